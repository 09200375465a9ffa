// symbols/cache_directory.h
//
// Where a cache may lie: a directory of this user's own that nobody else can write to, on a disk of
// this machine.
//
// Thread safety: pure functions of the file system.

#ifndef GMT_SYMBOLS_CACHE_DIRECTORY_H_
#define GMT_SYMBOLS_CACHE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"

namespace gmt::symbols {

// Makes `directory` and those above it where they are not there (for this user alone). An error
// says what is wrong with it.
absl::Status MakePrivateDirectory(const std::string& directory);

// What `directory` lies on is no network file system. Unknown kinds count as one.
bool IsLocal(const std::string& directory);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_CACHE_DIRECTORY_H_
