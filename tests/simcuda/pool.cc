#include "tests/simcuda/pool.h"

#include <algorithm>

#include "tests/simcuda/device.h"

namespace {
constexpr uint64_t kSegment = uint64_t{32} << 20;
constexpr uint64_t kAlignment = 512;
}  // namespace

uint64_t CUmemPoolHandle_st::Allocate(uint64_t size) {
  size = sim::RoundUp(size, kAlignment);
  uint64_t address = free_.Take(size, kAlignment);
  if (address == 0) {
    if (!Grow(sim::RoundUp(size, kSegment)) && !Grow(sim::RoundUp(size, sim::kPage))) return 0;
    address = free_.Take(size, kAlignment);
  }
  used_ += size;
  used_high_ = std::max(used_high_, used_);
  return address;
}

bool CUmemPoolHandle_st::Free(uint64_t address, uint64_t size) {
  size = sim::RoundUp(size, kAlignment);
  free_.Release(address, size);
  used_ -= size;
  return destroyed_ && Destroy();
}

bool CUmemPoolHandle_st::Destroy() {
  destroyed_ = true;
  TrimTo(0);
  return used_ == 0;
}

bool CUmemPoolHandle_st::Grow(uint64_t size) {
  if (max_size_ != 0 && reserved_ + size > max_size_) return false;
  uint64_t address = device_->Allocate(size);
  if (address == 0) return false;
  segments_[address] = size;
  free_.Release(address, size);
  reserved_ += size;
  reserved_high_ = std::max(reserved_high_, reserved_);
  return true;
}

void CUmemPoolHandle_st::TrimTo(uint64_t keep) {
  for (auto segment = segments_.begin(); segment != segments_.end() && reserved_ > keep;) {
    auto [address, size] = *segment;
    if (!free_.TakeAt(address, size)) {
      ++segment;
      continue;
    }
    device_->Free(address, size);
    reserved_ -= size;
    segment = segments_.erase(segment);
  }
}
