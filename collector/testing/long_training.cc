#include "collector/testing/long_training.h"

#include <algorithm>

#include "proto/gmt.pb.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kActivationAddress = uint64_t{1} << 44;
constexpr uint64_t kLargest = 1 << 22;  // size of an activation

}  // namespace

LongTraining::LongTraining(FakeTarget* target, uint64_t leak_every, uint64_t seed)
    : target_(*target), leak_every_(leak_every), random_(seed) {
  target_.Map("/opt/app/libtrain.so", kModule, kModuleEnd);
  for (uint64_t site = 0; site < kSites; ++site)
    stacks_.push_back(target_.Stack({kModule + 0x100 + site * 64, kModule + 0x20, kModule + 0x10}));
  leak_stack_ = target_.Stack({kLeakAddress, kModule + 0x20, kModule + 0x10});
  mark_ = target_.Text("step");
  activations_.reserve(kActivations);
  for (uint64_t n = 0; n < kWeights; ++n) Keep(512 * (1 + random_() % 4096), stacks_[n % 8]);
}

void LongTraining::Keep(uint64_t size, uint32_t stack) {
  target_.Alloc(next_address_, size, kBlock, stack);
  live_[next_address_] = size;
  next_address_ += kLargest;
  live_bytes_ += size;
  Count();
  ++allocations_;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
}

void LongTraining::Mark() {
  session::Record mark;
  mark.kind = session::Kind::kMark;
  mark.value = mark_;
  mark.size = steps_;
  mark.time_ns = target_.now_ns += 1000;
  target_.Write(mark);
  Count();
}

void LongTraining::Count() {
  ++events_;
  if (after_event) after_event();
}

void LongTraining::Step() {
  Mark();
  activations_.clear();
  uint64_t bytes = live_bytes_;
  for (uint64_t n = 0; n < kActivations; ++n) {
    const uint64_t address = kActivationAddress + n * kLargest;
    const uint64_t size = 512 * (1 + random_() % (kLargest / 512));
    target_.Alloc(address, size, kBlock, stacks_[n % kSites]);
    Count();
    activations_.emplace_back(address, size);
    bytes += size;
  }
  peak_bytes_ = std::max(peak_bytes_, bytes);
  if (steps_ % leak_every_ == 0) {
    live_bytes_ = bytes;  // includes the activations
    Keep(kLeakedBytes, leak_stack_);
    ++leaked_;
  } else {
    live_bytes_ = bytes;
  }
  for (const auto& [address, size] : activations_) {
    target_.Free(address, kBlock);
    Count();
    live_bytes_ -= size;
  }
  allocations_ += activations_.size();
  ++steps_;
}

}  // namespace gmt::collector
