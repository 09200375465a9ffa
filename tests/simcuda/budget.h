// Budget: the memory of one device, and how much of it is taken by whom. Decides on "out of
// memory". It counts for this process, or for all processes that share the device
// (shared_budget.h).
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_BUDGET_H_
#define TESTS_SIMCUDA_BUDGET_H_

#include <cstdint>

#include "tests/simcuda/shared_budget.h"

namespace sim {

class Budget {
 public:
  // `foreign` bytes are permanently held by other processes. `shared` may be null.
  Budget(int device, uint64_t total, uint64_t foreign, SharedBudget* shared)
      : device_(device), total_(total), foreign_(foreign), shared_(shared) {}

  // Takes all of `bytes` or nothing.
  bool Take(uint64_t bytes) {
    uint64_t limit = foreign_ < total_ ? total_ - foreign_ : 0;
    bool fits = shared_ != nullptr ? shared_->Take(device_, bytes, limit) : used_ + bytes <= limit;
    if (fits) used_ += bytes;
    return fits;
  }
  void Return(uint64_t bytes) {
    used_ -= bytes;
    if (shared_ != nullptr) shared_->Return(device_, bytes);
  }

  uint64_t total() const { return total_; }
  uint64_t used() const { return used_; }  // by this process
  uint64_t foreign() const {               // by others
    return foreign_ + (shared_ != nullptr ? shared_->HeldByOthers(device_) : 0);
  }
  uint64_t free() const {
    uint64_t held = used_ + foreign();
    return held < total_ ? total_ - held : 0;
  }

 private:
  int device_;
  uint64_t total_;
  uint64_t foreign_;
  SharedBudget* shared_;
  uint64_t used_ = 0;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_BUDGET_H_
