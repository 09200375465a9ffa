#include "format/allocator_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace gmt::format {
namespace {

constexpr uint64_t kGranularity = 512;
constexpr uint64_t kSmall = 1u << 20, kSmallSegment = 2u << 20, kLargeSegment = 20u << 20;
constexpr uint64_t kFirstSegment = uint64_t{0x7f} << 40;
constexpr int kShapes = 300;
constexpr int kActivationsOfStep = 4000;
constexpr size_t kMaxKept = 4000;
constexpr double kZipf = 1.1;
constexpr double kSavedTwice = 0.8;  // of activations
constexpr uint32_t kForwardThread = 41001, kBackwardThread = 41077;
// Logarithms of the nanoseconds between two events: median 2 us, 10 % above 9 us.
constexpr double kLogGap = 7.6, kLogGapSpread = 1.15;
constexpr double kLogDriver = 12.2, kLogDriverSpread = 0.4;  // a cudaMalloc takes 200 us

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

AllocatorTrace::AllocatorTrace(uint64_t seed, Roles roles)
    : roles_(roles),
      random_(seed),
      role_random_(~seed),
      thread_(kForwardThread),
      next_segment_(kFirstSegment) {
  for (int n = 0; n < kShapes; ++n) {
    const double bytes = std::exp2(9 + 16 * Uniform());  // 512 B to 32 MiB
    shapes_.push_back(RoundUp(static_cast<uint64_t>(bytes), kGranularity));
  }
  double sum = 0;
  for (uint32_t n = 1; n <= kStacks; ++n) stack_below_.push_back(sum += std::pow(n, -kZipf));
  for (double& below : stack_below_) below /= sum;
}

Event AllocatorTrace::Next() {
  while (planned_.empty()) Plan();
  const Event event = planned_.front();
  planned_.pop_front();
  return event;
}

// Plans one step at a time.
void AllocatorTrace::Plan() {
  PlanForward();
  PlanBackward();
}

void AllocatorTrace::PlanForward() {
  thread_ = kForwardThread;
  for (int n = 0; n < kActivationsOfStep; ++n) {
    while (Uniform() < 0.6) Temporary();
    Allocate(Size(), &activations_);
    SetRoles(activations_.back(), kRoleSaved);
    if (Uniform() >= 0.02) continue;
    std::vector<Block> staying;
    Allocate(Size() / 4 + kGranularity, &staying);
    kept_.push_back(staying.front());
    if (kept_.size() <= kMaxKept) continue;
    Free(kept_.front());
    kept_.pop_front();
  }
}

void AllocatorTrace::PlanBackward() {
  thread_ = kBackwardThread;
  while (!activations_.empty()) {
    while (Uniform() < 0.6) Temporary();
    // Approximately in reverse order: some tensors are kept a little longer.
    const size_t back =
        std::min<size_t>(activations_.size() - 1, Random() % 4 == 0 ? Random() % 6 : 0);
    const auto at = activations_.end() - 1 - static_cast<std::ptrdiff_t>(back);
    SetRoles(*at, 0);
    Free(*at);
    activations_.erase(at);
  }
}

void AllocatorTrace::Temporary() {
  std::vector<Block> held;
  for (uint64_t n = 1 + Random() % 3; n > 0; --n) Allocate(Size(), &held);
  for (const Block& block : held) Free(block);
}

void AllocatorTrace::Allocate(uint64_t size, std::vector<Block>* held) {
  size = RoundUp(size, kGranularity);
  const Block block = {Take(size), size, 0};
  held->push_back(block);
  allocated_ += size;
  Event event = NewEvent(ALLOC, BLOCK, block.address, size);
  event.stack = held->back().stack = Stack();
  planned_.push_back(event);
}

void AllocatorTrace::Free(const Block& block) {
  GiveBack(block.address);
  allocated_ -= block.size;
  planned_.push_back(NewEvent(FREE, BLOCK, block.address, block.size));
}

// Uses its own random generator, so that the rest of the trace is the same without roles.
void AllocatorTrace::SetRoles(const Block& block, uint32_t roles) {
  if (roles_ == Roles::kNone) return;
  std::swap(random_, role_random_);
  const int nodes = roles != 0 && Uniform() < kSavedTwice ? 2 : 1;
  for (int node = 0; node < nodes; ++node) {
    Event event = NewEvent(ROLE, BLOCK, block.address, 0);
    event.present = kHasTime | kHasThread | kHasDevice | kHasAddress;
    event.total_allocated = event.total_reserved = 0;
    event.roles = roles;
    if (roles != 0) {
      event.forward_stack = node == 0 ? block.stack : Stack();
      event.name = 1 + event.forward_stack % kNodeClasses;
    }
    planned_.push_back(event);
  }
  std::swap(random_, role_random_);
}

// Best fit. Small and large blocks use separate segments.
uint64_t AllocatorTrace::Take(uint64_t size) {
  const bool small = size <= kSmall;
  auto fit = free_.lower_bound({small, size, 0});
  if (fit == free_.end() || std::get<bool>(*fit) != small) {
    AddSegment(size);
    fit = free_.lower_bound({small, size, 0});
  }
  const uint64_t address = std::get<2>(*fit);
  free_.erase(fit);
  Piece& piece = pieces_.at(address);
  piece.free = false;
  const uint64_t rest = piece.size - size;
  if (rest >= (small ? kGranularity : kSmall)) {
    piece.size = size;
    pieces_[address + size] = {rest, piece.segment, small, true};
    free_.insert({small, rest, address + size});
  }
  return address;
}

void AllocatorTrace::GiveBack(uint64_t address) {
  auto at = pieces_.find(address);
  at->second.free = true;
  const auto joins = [&](auto other) {
    return other->second.free && other->second.segment == at->second.segment;
  };
  const auto forget = [&](auto piece) {
    free_.erase({piece->second.small, piece->second.size, piece->first});
  };
  if (const auto next = std::next(at); next != pieces_.end() && joins(next)) {
    forget(next);
    at->second.size += next->second.size;
    pieces_.erase(next);
  }
  if (at != pieces_.begin() && joins(std::prev(at))) {
    const auto before = std::prev(at);
    forget(before);
    before->second.size += at->second.size;
    pieces_.erase(at);
    at = before;
  }
  free_.insert({at->second.small, at->second.size, at->first});
}

void AllocatorTrace::AddSegment(uint64_t for_size) {
  const bool small = for_size <= kSmall;
  const uint64_t size =
      small ? kSmallSegment : std::max(kLargeSegment, RoundUp(for_size, kSmallSegment));
  const uint64_t address = next_segment_;
  next_segment_ += size;
  reserved_ += size;
  Event event = NewEvent(ALLOC, DEVICE, address, size);
  event.duration_ns = static_cast<uint64_t>(std::exp(kLogDriver + kLogDriverSpread * Normal()));
  event.present |= kHasDuration;
  event.stack = Stack();
  now_ns_ += static_cast<int64_t>(event.duration_ns);
  event.t_ns = now_ns_;
  planned_.push_back(event);
  pieces_[address] = {size, address, small, true};
  free_.insert({small, size, address});
}

Event AllocatorTrace::NewEvent(Kind kind, Memory memory, uint64_t address, uint64_t size) {
  now_ns_ += static_cast<int64_t>(std::exp(kLogGap + kLogGapSpread * Normal()));
  Event event;
  event.kind = kind;
  event.present = kHasTime | kHasThread | kHasDevice | kHasAddress | kHasSize;
  event.t_ns = now_ns_;
  event.thread = thread_;
  event.memory = memory;
  event.address = address;
  event.size = size;
  if (memory == BLOCK) {
    event.present |= kHasStream | kHasTotals;
    event.total_allocated = allocated_;
    event.total_reserved = reserved_;
  }
  return event;
}

// splitmix64. Unlike the distributions of <random>, it gives the same numbers on every platform.
uint64_t AllocatorTrace::Random() {
  uint64_t z = random_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The sum of twelve uniform numbers is a good enough approximation.
double AllocatorTrace::Normal() {
  double sum = -6;
  for (int n = 0; n < 12; ++n) sum += Uniform();
  return sum;
}

uint64_t AllocatorTrace::Size() {
  if (Uniform() < 0.9) return shapes_[Random() % shapes_.size()];
  return RoundUp(static_cast<uint64_t>(std::exp2(9 + 14 * Uniform())), kGranularity);
}

uint32_t AllocatorTrace::Stack() {
  const auto at = std::lower_bound(stack_below_.begin(), stack_below_.end(), Uniform());
  return std::min(kStacks, static_cast<uint32_t>(at - stack_below_.begin()) + 1);
}

}  // namespace gmt::format
