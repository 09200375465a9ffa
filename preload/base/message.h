// preload/base/message.h
//
// The shim's lines on stderr: one per fact that a user must know, written in one call. Nothing is
// written where the program seems to have put something else behind stderr's number (a file that is
// not at its end, a network connection), nor to a pipe that is full.

#ifndef GMT_PRELOAD_BASE_MESSAGE_H_
#define GMT_PRELOAD_BASE_MESSAGE_H_

namespace gmt::preload {

// "gpumemtrace: " + the text + newline. `text` is a printf format; lines are cut at 8 KiB.
__attribute__((format(printf, 1, 2))) void Say(const char* text, ...);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_MESSAGE_H_
