// preload/cupti/turn.h
//
// Turn: one at a time, with an end to the waiting. What it guards is rare: the subscription changes
// hands, a buffer is read. A thread that does not get its turn in time goes on without.
//
// Thread safety: all functions from any thread; not from a signal handler.

#ifndef GMT_PRELOAD_CUPTI_TURN_H_
#define GMT_PRELOAD_CUPTI_TURN_H_

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace gmt::preload {

class Turn {
 public:
  constexpr Turn() = default;

  // False where another thread has had it for all of `milliseconds`.
  bool Take(uint32_t milliseconds) {
    const uint32_t self = Self();
    for (uint32_t waited = 0;; ++waited) {
      uint32_t nobody = 0;
      if (holder_.compare_exchange_strong(nobody, self, std::memory_order_acquire)) return true;
      if (waited == milliseconds) return false;
      const timespec millisecond = {0, 1000000};
      syscall(SYS_nanosleep, &millisecond, nullptr);  // not a place where a thread is cancelled
    }
  }
  // REQUIRES: taken by this thread.
  void Give() { holder_.store(0, std::memory_order_release); }

  bool IsMine() const { return holder_.load(std::memory_order_relaxed) == Self(); }

 private:
  static uint32_t Self() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

  std::atomic<uint32_t> holder_{0};  // tid
};

// Gives the turn back at its end.
class Taken {
 public:
  Taken(Turn* turn, uint32_t milliseconds) : turn_(turn->Take(milliseconds) ? turn : nullptr) {}
  ~Taken() {
    if (turn_ != nullptr) turn_->Give();
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  explicit operator bool() const { return turn_ != nullptr; }

 private:
  Turn* const turn_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_TURN_H_
