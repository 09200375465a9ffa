// preload/process/write_guard.h
//
// WriteGuard: permission to write to the session during the guard's lifetime. If clients can detach
// (preload/process/attach_gate.h), a recording may end at any moment, but not before its guards are
// released. In a process without an attach gate, it is just the pointer that it was made from.
//
// Do not hold it across calls of the program's functions, or of driver or loader functions that may
// take long. After such a call, what a span knew before is valid only if the recording is still the
// same, which the second constructor checks.
//
// Thread safety: belongs to one thread. Cost: none without an attach gate, otherwise two atomic
// additions to a cache line that few threads share.

#ifndef GMT_PRELOAD_PROCESS_WRITE_GUARD_H_
#define GMT_PRELOAD_PROCESS_WRITE_GUARD_H_

#include "preload/base/thread_state.h"
#include "preload/process/process.h"

namespace gmt::preload {

class WriteGuard {
 public:
  // `process`: the result of Process::IfRecording() or the like; may be nullptr.
  explicit WriteGuard(Process* process) : process_(process) {
    if (process != nullptr && process->attach_gate.is_open) Enter();
  }
  // Only if the recording with that identity is still in progress.
  WriteGuard(Process* process, uint32_t identity) : WriteGuard(process) {
    if (process_ != nullptr && process_->identity != identity) Leave();
  }
  ~WriteGuard() { Leave(); }
  WriteGuard(const WriteGuard&) = delete;
  WriteGuard& operator=(const WriteGuard&) = delete;

  // nullptr if nothing is being recorded (any more).
  operator Process*() const { return process_; }
  Process* operator->() const { return process_; }

  void Leave() {
    if (counter_ != nullptr) counter_->fetch_sub(1, std::memory_order_release);
    counter_ = nullptr;
    process_ = nullptr;
  }

 private:
  void Enter() {
    counter_ = process_->attach_gate.CounterFor(&thread_state);
    counter_->fetch_add(1, std::memory_order_seq_cst);
    if (process_->status.load(std::memory_order_seq_cst) != Process::kRecording) Leave();
  }

  Process* process_;
  std::atomic<uint32_t>* counter_ = nullptr;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_WRITE_GUARD_H_
