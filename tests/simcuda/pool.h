// Pool: stream-ordered memory. A pool takes segments of 32 MiB or more from its device, carves
// allocations of any size out of them and keeps freed memory for later allocations, until a
// synchronisation finds that it holds more than its release threshold.
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_POOL_H_
#define TESTS_SIMCUDA_POOL_H_

#include <cstdint>
#include <map>

#include "tests/simcuda/address_space.h"
#include "tests/simcuda/cuda_api.h"

namespace sim {
class Device;
}

struct CUmemPoolHandle_st {
 public:
  // `max_size`: maximum bytes that the pool holds; 0: unlimited.
  explicit CUmemPoolHandle_st(sim::Device* device, uint64_t max_size = 0)
      : device_(device), max_size_(max_size) {}

  // Returns 0 if the device has no memory left.
  uint64_t Allocate(uint64_t size);
  // Returns true if the pool had been destroyed and this was its last allocation; the caller then
  // deletes the pool.
  bool Free(uint64_t address, uint64_t size);

  // Implements cuMemPoolDestroy: existing allocations remain. Returns true if there are none, as in
  // Free().
  bool Destroy();

  // Returns free segments to the device until the pool holds at most `keep` bytes or has none left.
  void TrimTo(uint64_t keep);

  sim::Device* device() const { return device_; }
  uint64_t used() const { return used_; }
  uint64_t used_high() const { return used_high_; }
  uint64_t reserved() const { return reserved_; }
  uint64_t reserved_high() const { return reserved_high_; }
  void ResetUsedHigh() { used_high_ = used_; }
  void ResetReservedHigh() { reserved_high_ = reserved_; }

  bool imported = false;  // from another process: nothing is allocated from it here
  uint64_t release_threshold = 0;
  int reuse_follow_event_dependencies = 1;
  int reuse_allow_opportunistic = 1;
  int reuse_allow_internal_dependencies = 1;

 private:
  bool Grow(uint64_t size);

  sim::Device* device_;
  uint64_t max_size_;
  bool destroyed_ = false;
  sim::AddressSpace free_;
  std::map<uint64_t, uint64_t> segments_;  // address -> size
  uint64_t used_ = 0, used_high_ = 0;
  uint64_t reserved_ = 0, reserved_high_ = 0;
};

namespace sim {
using Pool = CUmemPoolHandle_st;
}

#endif  // TESTS_SIMCUDA_POOL_H_
