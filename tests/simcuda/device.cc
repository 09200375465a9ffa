#include "tests/simcuda/device.h"

#include <sys/mman.h>

#include <cstdio>

namespace sim {

Device::Device(int ordinal, int physical, const Settings& settings, SharedBudget* shared)
    : ordinal_(ordinal),
      physical_(physical),
      protection_(settings.data > 0 ? PROT_READ | PROT_WRITE : PROT_NONE),
      budget_(physical, settings.memory, settings.foreign, shared),
      scatters_(settings.scatter != 0),
      random_(settings.scatter),
      default_pool_(this) {
  uint64_t wanted = kFirstAddress + ordinal * kArenaSize;
  void* arena = mmap(reinterpret_cast<void*>(wanted), kArenaSize, protection_,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) {
    std::fprintf(stderr, "simcuda: no address space for device %d; is `ulimit -v` set?\n", ordinal);
  } else {
    arena_ = reinterpret_cast<uint64_t>(arena);
    addresses_.Release(arena_, kArenaSize);
  }
  primary_.device = ordinal;
  primary_.primary = true;
  current_pool = &default_pool_;
}

uint64_t Device::FirstAddress() { return scatters_ ? arena_ + random_() % kArenaSize : 0; }

uint64_t Device::Allocate(uint64_t size) {
  bool small = size < kPage;
  uint64_t rounded = RoundUp(size, small ? kSmallAlignment : kPage);
  uint64_t address =
      addresses_.Take(rounded, small ? kSmallAlignment : kPage, small ? 0 : FirstAddress());
  if (address == 0) return 0;
  if (small ? TakePages(address, rounded) : budget_.Take(rounded)) return address;
  addresses_.Release(address, rounded);
  return 0;
}

void Device::Free(uint64_t address, uint64_t size) {
  bool small = size < kPage;
  uint64_t rounded = RoundUp(size, small ? kSmallAlignment : kPage);
  if (small) {
    ReturnPages(address, rounded);
  } else {
    budget_.Return(rounded);
    Discard(address, rounded);
  }
  addresses_.Release(address, rounded);
}

bool Device::TakePages(uint64_t address, uint64_t size) {
  uint64_t first = address / kPage, last = (address + size - 1) / kPage;
  uint64_t fresh = 0;
  for (uint64_t page = first; page <= last; ++page) fresh += !shared_pages_.contains(page);
  if (!budget_.Take(fresh * kPage)) return false;
  for (uint64_t page = first; page <= last; ++page) ++shared_pages_[page];
  return true;
}

void Device::ReturnPages(uint64_t address, uint64_t size) {
  for (uint64_t page = address / kPage; page <= (address + size - 1) / kPage; ++page) {
    if (--shared_pages_[page] == 0) {
      shared_pages_.erase(page);
      budget_.Return(kPage);
    }
  }
}

uint64_t Device::Reserve(uint64_t size, uint64_t alignment, uint64_t wanted) {
  if (wanted != 0 && addresses_.TakeAt(wanted, size)) return wanted;
  return addresses_.Take(size, alignment);
}

void Device::Unreserve(uint64_t address, uint64_t size) {
  Discard(address, size);
  addresses_.Release(address, size);
}

bool Device::MakeHostAccessible(uint64_t address, uint64_t size) {
  return mprotect(reinterpret_cast<void*>(address), RoundUp(size, 4096), PROT_READ | PROT_WRITE) ==
         0;
}

// Returns the RAM behind a range to the system and makes the range inaccessible again.
void Device::Discard(uint64_t address, uint64_t size) {
  mmap(reinterpret_cast<void*>(address), size, protection_,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace sim
