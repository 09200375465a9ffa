// collector/inject/thread_search.h
//
// Finds a thread of a process at a moment when it may execute a call (safe_point.h).
//
// Waiting threads are checked first, because they are disturbed least and are most often safe. Busy
// threads are checked repeatedly, at varying moments. Each check stops a thread for some
// microseconds.
//
// Thread safety: one thread.

#ifndef GMT_COLLECTOR_INJECT_THREAD_SEARCH_H_
#define GMT_COLLECTOR_INJECT_THREAD_SEARCH_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collector/inject/registers.h"
#include "collector/inject/remote_image.h"
#include "collector/inject/remote_memory.h"
#include "collector/inject/request.h"
#include "collector/inject/traced_thread.h"

namespace gmt::inject {

struct FoundThread {
  std::unique_ptr<TracedThread> thread;  // stopped
  Registers registers;
  MemoryMap map;  // as it is while the thread is stopped
  int tries = 0;
  // Threads that did not stop in time. They will stop later, and must be detached then.
  std::vector<std::unique_ptr<TracedThread>> unstopped;

  void DetachUnstopped();
};

// Returns DEADLINE_EXCEEDED if no thread was safe within `patience`, PERMISSION_DENIED, or
// NOT_FOUND if the process is gone.
absl::StatusOr<FoundThread> FindSafeThread(pid_t pid, const RemoteMemory& memory,
                                           const RemoteImage& libc,
                                           std::chrono::milliseconds patience,
                                           const std::function<void(Stage)>& on_stage);

// Describes what a thread is doing, for messages: "running", "sleeping in system call 7".
std::string DescribeThread(pid_t pid, pid_t thread);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_THREAD_SEARCH_H_
