// interop/foreign_input.h
//
// What people give a reading verb by mistake, told from its name and first bytes: a picture, a checkpoint,
// another profiler's trace. The answer to each says what it is, what was expected, and what to run.
//
// Thread safety: pure functions; FolderProblem lists a folder.

#ifndef GMT_INTEROP_FOREIGN_INPUT_H_
#define GMT_INTEROP_FOREIGN_INPUT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gmt::interop {

// "loss.png is a picture (PNG); expected ...". For a file that is none of what can be read; `head` is how
// it begins, unpacked where it is compressed.
std::string ForeignProblem(absl::string_view path, absl::string_view head);

// Whether it begins like something that has a name here: a checkpoint, another profiler's trace.
bool IsKnownForeign(absl::string_view path, absl::string_view head);

// "runs is a folder; it has the recordings a.gmt, b.gmt. ...".
std::string FolderProblem(const std::string& path);

// "there is no file run.gmt ...".
std::string MissingProblem(absl::string_view path);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_FOREIGN_INPUT_H_
