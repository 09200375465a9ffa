// Budget: how much memory one device has, and who has taken how much of it. The one place that says
// "out of memory". It counts for this process only; a budget shared by processes would replace this
// class and nothing else.
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_BUDGET_H_
#define TESTS_SIMCUDA_BUDGET_H_

#include <cstdint>

namespace sim {

class Budget {
 public:
  // `foreign` bytes are held by other processes for ever.
  Budget(uint64_t total, uint64_t foreign) : total_(total), foreign_(foreign) {}

  // Takes `bytes` or nothing.
  bool Take(uint64_t bytes) {
    if (bytes > free()) return false;
    used_ += bytes;
    return true;
  }
  void Return(uint64_t bytes) { used_ -= bytes; }

  uint64_t total() const { return total_; }
  uint64_t used() const { return used_; }  // by this process
  uint64_t foreign() const { return foreign_; }
  uint64_t free() const {
    uint64_t held = used_ + foreign_;
    return held < total_ ? total_ - held : 0;
  }

 private:
  uint64_t total_;
  uint64_t foreign_;
  uint64_t used_ = 0;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_BUDGET_H_
