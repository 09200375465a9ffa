// preload/process/writing.h
//
// Writing: the right to write to the session, for as long as it lives. A recording may end at any
// moment where somebody can detach (preload/process/door.h); who has this right ends it first. Where there is
// no door it is the pointer that it was made from.
//
// Not to be held across calls of the program's functions, the driver's or the loader's that may take
// their time: what a span knows before its call is good afterwards only if the recording is still the
// same, which the second constructor asks.
//
// Thread safety: one thread's. Cost: nothing without a door, else two atomic additions to a cache line
// that a thread shares with few.

#ifndef GMT_PRELOAD_PROCESS_WRITING_H_
#define GMT_PRELOAD_PROCESS_WRITING_H_

#include "preload/base/thread_state.h"
#include "preload/process/process.h"

namespace gmt::preload {

class Writing {
 public:
  // `process`: what Process::IfRecording() and the like have given; may be nullptr.
  explicit Writing(Process* process) : process_(process) {
    if (process != nullptr && process->door.is_open) Enter();
  }
  // Only if the recording with that identity still goes on.
  Writing(Process* process, uint32_t identity) : Writing(process) {
    if (process_ != nullptr && process_->identity != identity) Leave();
  }
  ~Writing() { Leave(); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  // nullptr where nothing is recorded (any more).
  operator Process*() const { return process_; }
  Process* operator->() const { return process_; }

  void Leave() {
    if (place_ != nullptr) place_->fetch_sub(1, std::memory_order_release);
    place_ = nullptr;
    process_ = nullptr;
  }

 private:
  void Enter() {
    place_ = process_->door.PlaceOf(&thread_state);
    place_->fetch_add(1, std::memory_order_seq_cst);
    if (process_->status.load(std::memory_order_seq_cst) != Process::kRecording) Leave();
  }

  Process* process_;
  std::atomic<uint32_t>* place_ = nullptr;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_WRITING_H_
