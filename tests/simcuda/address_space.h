// AddressSpace: tracks the free addresses of a range. Allocates first-fit, usually from the lowest
// address, and merges neighbours on release. An address is therefore reused soon after it was
// freed, as on a real device, which is what makes the order of events matter to a profiler.
//
// Only does arithmetic: it neither maps nor accesses memory.
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_ADDRESS_SPACE_H_
#define TESTS_SIMCUDA_ADDRESS_SPACE_H_

#include <cstdint>
#include <map>

namespace sim {

class AddressSpace {
 public:
  AddressSpace() = default;
  AddressSpace(uint64_t begin, uint64_t size) { Release(begin, size); }

  // Takes and returns the lowest free range of `size` bytes aligned to `alignment` (a power of
  // two), at or above `from` if there is one. Returns 0 if there is none at all.
  uint64_t Take(uint64_t size, uint64_t alignment, uint64_t from = 0);

  // Takes exactly [address, address + size). Returns false if part of it is not free.
  bool TakeAt(uint64_t address, uint64_t size);

  // Makes a range free, whether it was taken or is new. REQUIRES: no part of it is free.
  void Release(uint64_t address, uint64_t size);

  // The free ranges: address -> size. No two of them touch.
  const std::map<uint64_t, uint64_t>& free_ranges() const { return free_; }

 private:
  void Carve(std::map<uint64_t, uint64_t>::iterator range, uint64_t address, uint64_t size);

  std::map<uint64_t, uint64_t> free_;
};

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace sim

#endif  // TESTS_SIMCUDA_ADDRESS_SPACE_H_
