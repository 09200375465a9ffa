// answers/ranks/rank_files.h
//
// The recordings of a job, as a user names them: files, or directories with them.
//
// Thread safety: free function, callable from any thread.

#ifndef GMT_ANSWERS_RANKS_RANK_FILES_H_
#define GMT_ANSWERS_RANKS_RANK_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::answers {

// Returns the files that `places` name, each once. In a directory, at any depth, these are its
// recordings in the order of their names, and the digests (digest_file.h) whose recordings are not
// there; older parts of a recording are read with the newest one, which has the recording's name.
// A digest that is named itself stands for its recording, if that exists: `out/*` names both.
// Fails if a directory cannot be read, and with NOT_FOUND if it has neither.
absl::StatusOr<std::vector<std::string>> FilesOfRanks(const std::vector<std::string>& places);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_RANK_FILES_H_
