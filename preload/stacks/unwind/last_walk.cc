#include "preload/stacks/unwind/last_walk.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/stacks/unwind/rule_cache.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kWalksBits = 4;
static_assert(1 << kWalksBits == LastWalk::kWalks);

// Cache: a few threads' walks. Memory of threads that do not walk is never touched. In a fork child
// those that other threads were using at that moment stay in use.
constinit LastWalk last_walks[LastWalk::kWalks] = {};

}  // namespace

LastWalk* LastWalk::Acquire(uint64_t epoch) {
  if (RuleCache::IsInDoubt()) return nullptr;
  // The thread pointers of threads differ in the middle bits.
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  LastWalk* walk = &last_walks[thread * 0x9e3779b97f4a7c15 >> (64 - kWalksBits)];
  if (walk->is_in_use_.exchange(true, std::memory_order_acquire)) return nullptr;
  if (walk->epoch_ != epoch) {
    walk->epoch_ = epoch;
    *walk->end() = {~uint64_t{0}, 0, 0, StepProof::None()};
    walk->Forget();
  }
  return walk;
}

KnownFrame* LastWalk::Append(const KnownFrame* met, const KnownFrame* last,
                             KnownFrame* changed_end) {
  uint64_t bp = met->bp;
  for (const KnownFrame* from = met; from <= last; ++from) {
    if (from != met && from->proof.bp_slot() != 0) bp = LoadWord(from->proof.bp_slot());
    *changed_end = *from;
    changed_end++->bp = bp;
  }
  return changed_end;
}

uint64_t LastWalk::BpAt(const KnownFrame* met, const KnownFrame* known) {
  while (known != met && known->proof.bp_slot() == 0) --known;
  return known == met ? met->bp : LoadWord(known->proof.bp_slot());
}

KnownFrame* LastWalk::Replay(KnownFrame* begun, const KnownFrame* known, uint64_t high,
                             uint32_t room) const {
  const Remembered& replay = replays_[PlaceOf(*begun)];
  const KnownFrame* from = replay.frames;
  KnownFrame* to = begun;
  if (replay.count == 0 || from->sp != begun->sp || from->behind != begun->behind) return to + 1;
  if (from[replay.count - 1].sp > high || replay.count > room) return to + 1;
  const KnownFrame* const end = from + replay.count;
  while (++from < end) {
    const uint64_t sp = from->sp, behind = from->behind;
    const StepProof proof = from->proof;
    if (LoadWord(sp - sizeof(uint64_t)) != behind) break;
    if (proof.uses_bp() && to->bp != from[-1].bp) break;
    while (known->sp < sp) ++known;
    if (known->sp == sp && known->behind == behind) break;
    const uint64_t bp = proof.bp_slot() != 0 ? LoadWord(proof.bp_slot()) : to->bp;
    *++to = {sp, behind, bp, proof};
  }
  return to + 1;
}

void LastWalk::RememberReplay(const KnownFrame* begun, const KnownFrame* changed_end) {
  if (changed_end - begun < 2) return;
  Remembered& replay = replays_[PlaceOf(*begun)];
  uint32_t count = 0;
  for (; begun < changed_end && count < Remembered::kMaxFrames; ++begun) {
    if (count != 0 && !begun->proof.LoadsProveIt()) break;
    replay.frames[count++] = *begun;
  }
  replay.count = count;
}

uint32_t LastWalk::number() const { return static_cast<uint32_t>(this - last_walks); }

void LastWalk::Keep(const KnownFrame* changed_end, KnownFrame* met) {
  if (met == nullptr) is_whole_ = false;
  KnownFrame* to = met != nullptr ? met : end();
  session::StackSum* sum_to = sums_ + (to - frames_);
  session::StackSum sum = *sum_to;
  const bool last_has_no_address =
      (met != nullptr || changed_end == changed_ ? end() : changed_end)[-1].behind == 0;
  auto outside = static_cast<uint32_t>(end() - to) - (last_has_no_address ? 1 : 0);
  bool bp_matters = to->proof.bp_matters_further_in();
  while (changed_end != changed_) {
    const KnownFrame& from = *--changed_end;
    *--to = from;
    if (bp_matters || !from.proof.has_no_flags()) [[unlikely]] {
      to->proof = from.proof.WithBpMatters(bp_matters);
      bp_matters = to->proof.bp_matters_further_in();
    }
    if (outside < session::kMaxStackDepth) sum.AddNative(from.behind, outside);
    ++outside;
    *--sum_to = sum;
  }
  first_ = static_cast<uint32_t>(to - frames_);
}

void LastWalk::Forget() {
  first_ = kMaxFrames;
  is_whole_ = false;
  sums_[kMaxFrames] = {};
  for (Remembered& replay : replays_) replay.count = 0;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
