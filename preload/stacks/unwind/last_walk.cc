#include "preload/stacks/unwind/last_walk.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/stacks/unwind/rule_cache.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kWalksBits = 5;
static_assert(1 << kWalksBits == LastWalk::kWalks);

// Cache: a few threads' walks. Memory of threads that do not walk is never touched. In a fork child
// those that other threads were using at that moment stay in use.
constinit LastWalk last_walks[LastWalk::kWalks] = {};

void Copy(const KnownFrame& from, KnownFrame* to) {
  *to = from;
  if (from.bp_slot == &from.bp) to->bp_slot = &to->bp;
}

}  // namespace

LastWalk* LastWalk::Acquire(uint64_t epoch) {
  if (RuleCache::IsInDoubt()) return nullptr;
  // The thread pointers of threads differ in the middle bits.
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  LastWalk* walk = &last_walks[thread * 0x9e3779b97f4a7c15 >> (64 - kWalksBits)];
  if (walk->is_in_use_.exchange(true, std::memory_order_acquire)) return nullptr;
  if (walk->epoch_ != epoch) {
    walk->epoch_ = epoch;
    walk->end()->sp = ~uint64_t{0};
    walk->Forget();
  }
  return walk;
}

KnownFrame* LastWalk::Append(const KnownFrame* met, const KnownFrame* last,
                             KnownFrame* changed_end) {
  for (; met <= last; ++met) Copy(*met, changed_end++);
  return changed_end;
}

uint32_t LastWalk::number() const { return static_cast<uint32_t>(this - last_walks); }

void LastWalk::Keep(const KnownFrame* changed_end, KnownFrame* met) {
  KnownFrame* to = met != nullptr ? met : end();
  RemoveUntil(to);
  if (met == nullptr) is_whole_ = false;
  while (changed_end != changed_) Copy(*--changed_end, --to);
  first_ = static_cast<uint32_t>(to - frames_);
}

void LastWalk::Forget() {
  first_ = summed_ = kMaxFrames;
  sum_ = {};
  is_whole_ = false;
}

void LastWalk::RemoveUntil(const KnownFrame* frame) {
  const auto until = static_cast<uint32_t>(frame - frames_);
  for (; summed_ < until; ++summed_) {
    const KnownFrame& removed = frames_[summed_];
    if (removed.behind != 0) sum_.RemoveNative(removed.behind, CountFrom(&removed + 1));
  }
}

session::StackSum LastWalk::SumFrom(const KnownFrame* first) {
  RemoveUntil(first);
  const auto from = static_cast<uint32_t>(first - frames_);
  while (summed_ > from) {
    const KnownFrame& added = frames_[--summed_];
    if (added.behind != 0) sum_.AddNative(added.behind, CountFrom(&added + 1));
  }
  return sum_;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
