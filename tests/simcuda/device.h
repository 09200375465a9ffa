// Device: the memory of one simulated GPU: its budget and its 4 TiB of addresses.
//
// Linear memory follows the driver's page rule: budget is taken in pages of 2 MiB. Allocations of 2
// MiB or more have their own pages; smaller ones share pages, so the first cudaMalloc(256) costs 2
// MiB and the next ones cost nothing until the page is full.
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_DEVICE_H_
#define TESTS_SIMCUDA_DEVICE_H_

#include <cstdint>
#include <random>
#include <unordered_map>

#include "tests/simcuda/address_space.h"
#include "tests/simcuda/budget.h"
#include "tests/simcuda/objects.h"
#include "tests/simcuda/pool.h"
#include "tests/simcuda/settings.h"

namespace sim {

constexpr uint64_t kPage = uint64_t{2} << 20;       // granularity of the budget and of mappings
constexpr uint64_t kSmallAlignment = 512;           // alignment of allocations below a page
constexpr uint64_t kFirstAddress = 0x300000000000;  // of device 0
constexpr uint64_t kArenaSize = uint64_t{4} << 40;  // addresses per device

// The memory shared by the graphs of one device. It grows with their concurrent use, and only
// cuDeviceGraphMemTrim returns what they no longer use.
struct GraphPool {
  uint64_t used = 0, used_high = 0;
  uint64_t reserved = 0, reserved_high = 0;
};

class Device {
 public:
  // `shared` may be null; it must outlive the device.
  Device(int ordinal, int physical, const Settings& settings, SharedBudget* shared);
  Device(const Device&) = delete;

  // Takes addresses and budget for `size` bytes; returns 0 if either is exhausted.
  uint64_t Allocate(uint64_t size);
  // Undoes Allocate(size) == address.
  void Free(uint64_t address, uint64_t size);

  // Takes addresses without budget, for reservations and imported memory.
  uint64_t Reserve(uint64_t size, uint64_t alignment, uint64_t wanted);
  void Unreserve(uint64_t address, uint64_t size);

  // Makes a range readable and writable by the host, like managed memory.
  bool MakeHostAccessible(uint64_t address, uint64_t size);

  int ordinal() const { return ordinal_; }
  int physical() const { return physical_; }  // device_identity.h
  Budget& budget() { return budget_; }
  GraphPool& graph_pool() { return graph_pool_; }
  CUctx_st& primary() { return primary_; }
  Pool& default_pool() { return default_pool_; }

  CUmemoryPool current_pool = nullptr;  // from which cuMemAllocAsync allocates

 private:
  uint64_t FirstAddress();  // at which to look for free ones
  void Discard(uint64_t address, uint64_t size);
  bool TakePages(uint64_t address, uint64_t size);
  void ReturnPages(uint64_t address, uint64_t size);

  int ordinal_;
  int physical_;
  int protection_;
  Budget budget_;
  AddressSpace addresses_;
  uint64_t arena_ = 0;
  const bool scatters_;
  std::mt19937_64 random_;
  std::unordered_map<uint64_t, int> shared_pages_;  // page -> small allocations that touch it
  CUctx_st primary_;
  Pool default_pool_;
  GraphPool graph_pool_;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_DEVICE_H_
