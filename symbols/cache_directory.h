// symbols/cache_directory.h
//
// Checks for directories that may hold a cache: they must belong to this user, be writable by this
// user only, and be on a local disk.
//
// Thread safety: pure functions of the file system.

#ifndef GMT_SYMBOLS_CACHE_DIRECTORY_H_
#define GMT_SYMBOLS_CACHE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace gmt::symbols {

// Creates `directory` and missing parents, accessible by this user only. The error message contains
// the reason.
absl::Status MakePrivateDirectory(const std::string& directory);

// Returns whether `directory` is not on a network file system. Unknown file systems count as
// network.
bool IsLocal(const std::string& directory);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_CACHE_DIRECTORY_H_
