// collector/inject/proc_file.h
//
// Reads small files of /proc.
//
// Thread safety: free functions.

#ifndef GMT_COLLECTOR_INJECT_PROC_FILE_H_
#define GMT_COLLECTOR_INJECT_PROC_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gmt::inject {

// Returns NOT_FOUND if the file or its process does not exist, PERMISSION_DENIED, or otherwise
// UNAVAILABLE. The message is "PATH: REASON".
absl::StatusOr<std::string> ReadProcFile(const std::string& path);

// Returns the value after "NAME:" in a text like /proc/PID/status, without surrounding blanks;
// empty if there is none.
std::string_view StatusField(std::string_view status, std::string_view name);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_PROC_FILE_H_
