// collector/inject/seccomp_filter.h
//
// What the seccomp filters of a process would do to the system calls that loading a library takes. A
// filter may answer one with the end of the process, so they are read and asked first.
//
// Thread safety: free functions. ReadSeccompFilters stops the process's first thread for some
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

// PERMISSION_DENIED: that takes CAP_SYS_ADMIN. UNAVAILABLE: the thread waits in the kernel, and cannot be
// stopped; it stays traced until this process ends.
absl::StatusOr<std::vector<SeccompFilter>> ReadSeccompFilters(pid_t pid);

// SECCOMP_RET_...: what one filter says to a call. A filter that is damaged ends the process.
uint32_t AskFilter(const SeccompFilter& filter, const seccomp_data& call);

// The first system call that is needed and refused, in words: "mmap ends the process"; empty where all are
// allowed.
std::string WhatFiltersForbid(const std::vector<SeccompFilter>& filters);

// The same of the filters that a process has; errors as of ReadSeccompFilters. A child looks, so that the
// process is let go of in any case.
absl::StatusOr<std::string> WhatItsFiltersForbid(pid_t pid);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_SECCOMP_FILTER_H_
