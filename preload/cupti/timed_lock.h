// preload/cupti/timed_lock.h
//
// TimedLock: a mutex whose acquisition times out. What it guards is rare: a change of the
// subscription's owner, reading a buffer. A thread that does not get it in time proceeds without.
//
// Thread safety: all functions may be called from any thread, but not from a signal handler.

#ifndef GMT_PRELOAD_CUPTI_TIMED_LOCK_H_
#define GMT_PRELOAD_CUPTI_TIMED_LOCK_H_

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace gmt::preload {

class TimedLock {
 public:
  constexpr TimedLock() = default;

  // Returns false if other threads held it for all of `milliseconds`.
  bool Take(uint32_t milliseconds) {
    const uint32_t self = Self();
    for (uint32_t waited = 0;; ++waited) {
      uint32_t no_owner = 0;
      if (holder_.compare_exchange_strong(no_owner, self, std::memory_order_acquire)) return true;
      if (waited == milliseconds) return false;
      const timespec millisecond = {0, 1000000};
      syscall(SYS_nanosleep, &millisecond, nullptr);  // not a cancellation point
    }
  }
  // REQUIRES: taken by this thread.
  void Give() { holder_.store(0, std::memory_order_release); }

  bool IsMine() const { return holder_.load(std::memory_order_relaxed) == Self(); }

 private:
  static uint32_t Self() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

  std::atomic<uint32_t> holder_{0};  // tid
};

// Releases the lock at its end.
class TimedLockGuard {
 public:
  TimedLockGuard(TimedLock* timed_lock, uint32_t milliseconds)
      : lock_(timed_lock->Take(milliseconds) ? timed_lock : nullptr) {}
  ~TimedLockGuard() {
    if (lock_ != nullptr) lock_->Give();
  }
  TimedLockGuard(const TimedLockGuard&) = delete;
  TimedLockGuard& operator=(const TimedLockGuard&) = delete;

  explicit operator bool() const { return lock_ != nullptr; }

 private:
  TimedLock* const lock_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_TIMED_LOCK_H_
