#include "tests/simcuda/address_space.h"

#include <algorithm>
#include <iterator>

namespace sim {

uint64_t AddressSpace::Take(uint64_t size, uint64_t alignment, uint64_t from) {
  auto range = free_.upper_bound(from);
  if (range != free_.begin()) --range;
  for (; range != free_.end(); ++range) {
    uint64_t address = RoundUp(std::max(range->first, from), alignment);
    uint64_t skipped = address - range->first;
    if (skipped <= range->second && size <= range->second - skipped) {
      Carve(range, address, size);
      return address;
    }
  }
  return from == 0 ? 0 : Take(size, alignment);
}

bool AddressSpace::TakeAt(uint64_t address, uint64_t size) {
  auto range = free_.upper_bound(address);
  if (range == free_.begin()) return false;
  --range;
  uint64_t skipped = address - range->first;
  if (skipped > range->second || size > range->second - skipped) return false;
  Carve(range, address, size);
  return true;
}

void AddressSpace::Carve(std::map<uint64_t, uint64_t>::iterator range, uint64_t address,
                         uint64_t size) {
  uint64_t begin = range->first;
  uint64_t end = begin + range->second;
  free_.erase(range);
  if (address > begin) free_[begin] = address - begin;
  if (address + size < end) free_[address + size] = end - (address + size);
}

void AddressSpace::Release(uint64_t address, uint64_t size) {
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += size;
      return;
    }
  }
  free_[address] = size;
}

}  // namespace sim
