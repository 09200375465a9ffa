// collector/inject/proc_file.h
//
// Small files of /proc, whole.
//
// Thread safety: free functions.

#ifndef GMT_COLLECTOR_INJECT_PROC_FILE_H_
#define GMT_COLLECTOR_INJECT_PROC_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gmt::inject {

// NOT_FOUND where it, or its process, does not exist; PERMISSION_DENIED; else UNAVAILABLE. The message
// is "PATH: why".
absl::StatusOr<std::string> ReadProcFile(const std::string& path);

// The value behind "NAME:" in a text like /proc/PID/status, without blanks around it; empty where it is not
// there.
std::string_view StatusField(std::string_view status, std::string_view name);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_PROC_FILE_H_
