// collector/inject/seccomp_filter.h
//
// Evaluates a process's seccomp filters for the system calls that loading a library needs. A filter
// may kill the process for such a call, so this is checked first.
//
// Thread safety: free functions. ReadSeccompFilters() stops the process's main thread for some
// microseconds.

#ifndef GMT_COLLECTOR_INJECT_SECCOMP_FILTER_H_
#define GMT_COLLECTOR_INJECT_SECCOMP_FILTER_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::inject {

using SeccompFilter = std::vector<sock_filter>;

// Returns PERMISSION_DENIED without CAP_SYS_ADMIN. Returns UNAVAILABLE if the thread waits in the
// kernel and cannot be stopped; it then stays traced until this process ends.
absl::StatusOr<std::vector<SeccompFilter>> ReadSeccompFilters(pid_t pid);

// Returns the SECCOMP_RET_... of one filter for a call. A damaged filter counts as killing the
// process.
uint32_t RunFilter(const SeccompFilter& filter, const seccomp_data& call);

// Returns the first needed system call that is not allowed, in words: "mmap would end it"; empty if
// all are allowed.
std::string FindForbiddenCall(const std::vector<SeccompFilter>& filters);

// Like the above, for the filters of a process; errors as of ReadSeccompFilters(). A child process
// reads them, so that the process is released in any case.
absl::StatusOr<std::string> FindForbiddenCallOf(pid_t pid);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_SECCOMP_FILTER_H_
