// analysis/diff/file_renames.h
//
// Which files of one recording another one knows under a new name: after a `git mv`, or where a script
// was copied. A file that has vanished and one that has appeared are the same where most of what their
// frames say is the same: function, who called it, whom it called.
//
//   base      forward < Block.forward (model.py)  < main (train.py)
//   changed   forward < Block.forward (network.py) < main (train.py)     network.py was model.py
//
// Only where both are each other's best, and no other is as good: what is in doubt is no rename.
//
// Thread safety: pure functions. Cost: of comparing vanished files with those that appeared.

#ifndef GMT_ANALYSIS_DIFF_FILE_RENAMES_H_
#define GMT_ANALYSIS_DIFF_FILE_RENAMES_H_

#include <map>
#include <string>
#include <vector>

#include "analysis/diff/stack_matching.h"

namespace gmt::analysis {

// Names without folders, of `changed` to what `base` calls them; files that kept their names are not
// there.
using FileRenames = std::map<std::string, std::string>;

FileRenames FindFileRenames(const std::vector<StackToMatch>& base,
                            const std::vector<StackToMatch>& changed);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_FILE_RENAMES_H_
