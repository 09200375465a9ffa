// preload/base/message.h
//
// Messages of this library on stderr: one per fact that a user must know, each written in a single
// call. Nothing is written if the program seems to have reused stderr's number for something else
// (a file that is not at its end, a network connection), or if stderr is a full pipe.

#ifndef GMT_PRELOAD_BASE_MESSAGE_H_
#define GMT_PRELOAD_BASE_MESSAGE_H_

namespace gmt::preload {

// Writes "gpumemtrace: ", the text and a newline. `text` is a printf format; lines are cut at 8
// KiB.
__attribute__((format(printf, 1, 2))) void Say(const char* text, ...);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_MESSAGE_H_
