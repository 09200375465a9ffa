// interop/foreign_input.h
//
// Recognises files that users pass to a reading verb by mistake, by name and first bytes: a
// picture, a checkpoint, another profiler's trace. The message for each says what it is, what was
// expected, and what to run.
//
// Thread safety: pure functions; FolderProblem lists a directory.

#ifndef GMT_INTEROP_FOREIGN_INPUT_H_
#define GMT_INTEROP_FOREIGN_INPUT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gmt::interop {

// Returns "loss.png is a picture (PNG); expected ..." for a file in no supported format. `head` is
// its beginning, decompressed if necessary.
std::string ForeignProblem(absl::string_view path, absl::string_view head);

// Returns whether the file begins like a recognised foreign format: a checkpoint, another
// profiler's trace.
bool IsKnownForeign(absl::string_view path, absl::string_view head);

// Returns "runs is a folder; name a file in it: a.gmt, b.gmt".
std::string FolderProblem(const std::string& path);

// Returns "there is no file run.gmt. ...".
std::string MissingProblem(absl::string_view path);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_FOREIGN_INPUT_H_
