#include "preload/stacks/unwind/known_walks.h"

#include <string.h>

#if GMT_HAS_NATIVE_WALK

#include "preload/stacks/unwind/rule_cache.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kTreesBits = 3;
static_assert(1 << kTreesBits == KnownWalks::kTrees);

// Cache: a few threads' walks. Memory of threads that do not walk is never touched. In a fork child
// those that other threads were using at that moment stay in use.
constinit KnownWalks known_walks[KnownWalks::kTrees] = {};

}  // namespace

KnownWalks* KnownWalks::Acquire(uint64_t epoch) {
  if (RuleCache::IsInDoubt()) return nullptr;
  // The thread pointers of threads differ in the middle bits.
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  KnownWalks* walks = &known_walks[thread * 0x9e3779b97f4a7c15 >> (64 - kTreesBits)];
  if (walks->is_in_use_.exchange(true, std::memory_order_acquire)) return nullptr;
  if (walks->epoch_ != epoch || kRoom - walks->used_ < kMaxFrames ||
      walks->first_check_ < kMaxChecks) [[unlikely]] {
    walks->epoch_ = epoch;
    walks->Forget();
  }
  return walks;
}

uint32_t KnownWalks::number() const { return static_cast<uint32_t>(this - known_walks); }

// The step from `frame`, whose proof is that of the step to `caller`.
void KnownWalks::PrependChecksOf(const KnownFrame& frame, const KnownFrame* caller) {
  const StepProof proof = frame.proof;
  if (!proof.LoadsProveIt()) return PrependCheck(KnownCheck::StopAt(IndexOf(&frame)));
  PrependCheck({caller->sp - sizeof(uint64_t), caller->behind});
  if (proof.compares_bp()) PrependCheck({proof.bp_slot(), caller->bp});
}

KnownFrame* KnownWalks::FrameOf(KnownFrame* frame, uint32_t check) {
  const KnownFrame* const last = LastOfPiece(frame);
  while (frame != last && links_[frame + 1 - frames_].check <= check) ++frame;
  return frame;
}

KnownFrame* KnownWalks::Keep(const KnownFrame* new_end, KnownFrame* outer) {
  KnownFrame* const first = end();
  if (new_end == first) return outer;
  auto index = static_cast<uint16_t>(new_end - 1 - frames_);
  Link link = {};
  session::StackSum sum;
  StepProof::Caller caller = StepProof::Caller::kNone;
  bool bp_matters = false;
  if (outer != nullptr) {
    const auto i = static_cast<uint16_t>(outer - frames_);
    link = links_[i];
    link.outer = i;
    link.ends = false;
    sum = session::StackSum(sums_[i]);
    caller = StepProof::Caller::kElsewhere;
    bp_matters = outer->proof.bp_matters();
    PrependCheck(KnownCheck::GoOnAt(i));
  } else {
    link.outer = link.root = index;
  }
  used_ = static_cast<uint32_t>(new_end - frames_);
  const uint16_t last = index;
  for (KnownFrame* frame = frames_ + index; frame >= first; --frame, --index) {
    frame->proof = frame->proof.To(caller, bp_matters);
    PrependChecksOf(*frame, caller == StepProof::Caller::kNext ? frame + 1 : outer);
    link.check = static_cast<uint16_t>(first_check_);
    if (frame->behind != 0) {
      if (link.depth < session::kMaxStackDepth) sum.AddNative(frame->behind, link.depth);
      ++link.depth;
    }
    uint16_t& place = first_[PlaceOf(*frame)];
    link.next = place;
    place = index;
    links_[index] = link;
    sums_[index] = sum.words();
    link.outer = last;
    caller = StepProof::Caller::kNext;
    bp_matters = frame->proof.bp_matters();
  }
  return first;
}

KnownFrame* KnownWalks::Append(const KnownFrame* first, const KnownFrame* last,
                               KnownFrame* new_end) const {
  uint64_t bp = first->bp;
  for (const KnownFrame* frame = first;;) {
    *new_end = *frame;
    new_end++->bp = bp;
    if (frame == last) return new_end;
    const StepProof proof = frame->proof;
    frame = CallerOf(frame);
    if (!proof.LoadsProveIt()) {
      bp = frame->bp;
    } else if (proof.bp_slot() != 0) {
      bp = LoadWord(proof.bp_slot());
    }
  }
}

uint64_t KnownWalks::BpAt(const KnownFrame* first, const KnownFrame* last) const {
  // Mostly one of the last steps has loaded it.
  const KnownFrame* piece = first;
  while (last < piece || last > LastOfPiece(piece)) piece = CallerOf(LastOfPiece(piece));
  while (last != piece)
    if (const uint64_t slot = (--last)->proof.bp_slot(); slot != 0) return LoadWord(slot);
  uint64_t bp = first->bp;
  for (; first != piece; first = CallerOf(first))
    if (first->proof.bp_slot() != 0) bp = LoadWord(first->proof.bp_slot());
  return bp;
}

KnownFrame* KnownWalks::Find(const KnownFrame& state, uint64_t high, uint32_t room,
                             const KnownFrame* after) {
  uint32_t i = after == nullptr ? first_[PlaceOf(state)] : links_[after - frames_].next;
  for (uint32_t probes = 0; i != 0 && probes < kMaxProbes; i = links_[i].next, ++probes) {
    KnownFrame& frame = frames_[i];
    if (frame.sp == state.sp && frame.behind == state.behind &&
        (frame.bp == state.bp || !frame.proof.bp_matters()) && AreBelow(high, i) &&
        links_[i].depth < room)
      return &frame;
  }
  return nullptr;
}

void KnownWalks::Prefer(const KnownFrame* frame) {
  const auto index = static_cast<uint16_t>(frame - frames_);
  uint16_t& place = first_[PlaceOf(*frame)];
  uint16_t* at = &place;
  while (*at != index) at = &links_[*at].next;
  *at = links_[index].next;
  links_[index].next = place;
  place = index;
}

void KnownWalks::Forget() {
  used_ = 1;
  first_check_ = kChecks;
  memset(first_, 0, sizeof(first_));
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
