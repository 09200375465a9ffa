// collector/inject/inject.h
//
// Injects a library into a running process and makes it call one of the library's functions:
//
//   int FUNCTION(const char* options, char* text, size_t capacity)
//
// One thread of the process is stopped for some microseconds at a moment when it holds no lock of
// the loader or of an allocator (safe_point.h). It is given a call to execute (remote_call.h) and
// released. It loads the library and calls the function itself, without being traced. Then it is
// stopped once more, and all its registers are restored, including an interrupted system call.
//
// Invariants
//   J1  Nothing is changed before a suitable thread has been found.
//   J2  As soon as a thread has its call, it can finish without us. If we are killed, at any
//       instruction, it loads the library, returns to where it was and continues. The same holds if
//       the call takes longer than we wait.
//   J3  When Inject() returns, by whatever path, we neither stop nor trace any thread of the
//       process: a child of ours does the work, and the kernel detaches all threads when it ends.
//   J4  Only the library stays in the process. The call itself uses the stack of that thread and
//       unused bytes in a library's last page of code; both are restored.
//
// Thread safety: free functions. Inject() forks, so call it while this process has only one thread.
// docs/attach.md has the reasons.

#ifndef GMT_COLLECTOR_INJECT_INJECT_H_
#define GMT_COLLECTOR_INJECT_INJECT_H_

#include "absl/status/statusor.h"
#include "collector/inject/request.h"

namespace gmt::inject {

// Errors: FAILED_PRECONDITION: the loader refused the library (the message quotes it), or the
// library has no such function. DEADLINE_EXCEEDED: there was no safe moment and nothing was
// changed; or the call has not returned yet, and the message says what its thread is doing.
// NOT_FOUND: the process ended or executed another program meanwhile. PERMISSION_DENIED: the kernel
// does not allow it.
absl::StatusOr<Reply> Inject(const Request& request);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_INJECT_H_
