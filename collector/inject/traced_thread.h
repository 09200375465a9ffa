// collector/inject/traced_thread.h
//
// TracedThread: a thread of another process that this one traces.
//
// It is seized, which does not disturb it, and stopped by PTRACE_INTERRUPT, which leaves no signal
// behind. Signals that come meanwhile are handed on. When the object goes, the thread runs on as it
// would have without us; when this process is killed, the kernel sees to the same.
//
// Thread safety: one thread, the one that seized.

#ifndef GMT_COLLECTOR_INJECT_TRACED_THREAD_H_
#define GMT_COLLECTOR_INJECT_TRACED_THREAD_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

namespace gmt::inject {

class TracedThread {
 public:
  // PERMISSION_DENIED, or NOT_FOUND where it is gone.
  static absl::StatusOr<std::unique_ptr<TracedThread>> Seize(pid_t thread);
  ~TracedThread();
  TracedThread(const TracedThread&) = delete;
  TracedThread& operator=(const TracedThread&) = delete;

  // False where it does not stop in that time (it waits for a disk or a driver) or has ended.
  bool Stop(std::chrono::milliseconds patience);
  // Lets go of it.
  void Release();

  pid_t id() const { return id_; }
  bool SetSignalMask(uint64_t mask) const;

 private:
  explicit TracedThread(pid_t id) : id_(id) {}
  pid_t id_;
  bool traced_ = true, stopped_ = false;
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_TRACED_THREAD_H_
