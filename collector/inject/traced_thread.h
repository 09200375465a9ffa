// collector/inject/traced_thread.h
//
// TracedThread: a thread of another process that this one traces.
//
// Seizing does not disturb the thread. PTRACE_INTERRUPT stops it without leaving a signal behind.
// Signals that arrive meanwhile are delivered. When the object is destroyed, the thread continues
// as if nothing had happened; when this process is killed, the kernel does the same.
//
// Thread safety: only from the thread that seized it.

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
  // Returns PERMISSION_DENIED, or NOT_FOUND if the thread is gone.
  static absl::StatusOr<std::unique_ptr<TracedThread>> Seize(pid_t thread);
  ~TracedThread();
  TracedThread(const TracedThread&) = delete;
  TracedThread& operator=(const TracedThread&) = delete;

  // Returns false if the thread does not stop in time (it waits for a disk or a driver) or has
  // ended.
  bool Stop(std::chrono::milliseconds patience);
  // Detaches from the thread.
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
