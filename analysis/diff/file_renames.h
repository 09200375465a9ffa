// analysis/diff/file_renames.h
//
// Finds files that have another name in another recording: after a `git mv`, or because a script
// was copied. A file that disappeared and one that appeared are the same if most of their frames
// agree in function, caller and callee.
//
//   base      forward < Block.forward (model.py)  < main (train.py)
//   changed   forward < Block.forward (network.py) < main (train.py)     network.py was model.py
//
// Reported only if each is the other's best match and no other is as good; doubtful cases are
// omitted.
//
// Thread safety: pure functions. Cost: comparing the files that disappeared with those that
// appeared.

#ifndef GMT_ANALYSIS_DIFF_FILE_RENAMES_H_
#define GMT_ANALYSIS_DIFF_FILE_RENAMES_H_

#include <map>
#include <string>
#include <vector>

#include "analysis/diff/stack_matching.h"

namespace gmt::analysis {

// Maps names without directories in `changed` to the names in `base`. Omits files that kept their
// names.
using FileRenames = std::map<std::string, std::string>;

FileRenames FindFileRenames(const std::vector<StackToMatch>& base,
                            const std::vector<StackToMatch>& changed);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_FILE_RENAMES_H_
