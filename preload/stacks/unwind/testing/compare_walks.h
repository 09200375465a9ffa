// preload/stacks/unwind/testing/compare_walks.h
//
// Walks the same stack by NativeWalk, with and without earlier walks, by SlowWalk and by libgcc's
// unwinder, and compares frame by frame. Does not allocate, because the caller may be malloc.

#ifndef GMT_PRELOAD_STACKS_UNWIND_TESTING_COMPARE_WALKS_H_
#define GMT_PRELOAD_STACKS_UNWIND_TESTING_COMPARE_WALKS_H_

#include <setjmp.h>
#include <unwind.h>

#include <csignal>
#include <cstdint>
#include <cstdio>

#include "preload/stacks/unwind/native_walk.h"
#include "preload/stacks/unwind/slow_walk.h"

namespace gmt::preload::testing {

struct WalkedFrames {
  static constexpr uint32_t kRoom = 320;
  NativeFrame frames[kRoom];
  uint32_t count = 0;
  bool truncated = false;
  bool full() const { return count == kRoom; }
};

enum class Outcome {
  kSame,       // down to the outermost frame
  kTooDeep,    // as far as NativeWalk can go
  kTruncated,  // NativeWalk reports that it is truncated; libgcc stops there too or continues
  kFurther,    // NativeWalk found a caller that libgcc did not
  kDifferent,
  kLibgccCrashed,  // libgcc crashed on an invalid read
};

template <typename Walk>
void Collect(Walk* walk, WalkedFrames* walked) {
  for (NativeFrame frame; !walked->full() && walk->Next(&frame);) {
    walked->frames[walked->count++] = frame;
  }
  walked->truncated = walk->truncated();
}

inline void CollectByRules(const Registers& here, NativeWalk::Known known, WalkedFrames* walked) {
  NativeWalk walk(here, known);
  walk.ForEach([&](NativeFrame frame) {
    walked->frames[walked->count++] = frame;
    return !walked->full();
  });
  walked->truncated = walk.truncated();
}

// libgcc provides the CFA of a frame when it visits the frame's caller.
inline _Unwind_Reason_Code CollectFrame(_Unwind_Context* context, void* argument) {
  auto* walked = static_cast<WalkedFrames*>(argument);
  if (walked->count > 0) walked->frames[walked->count - 1].cfa = _Unwind_GetCFA(context);
  if (walked->full()) return _URC_END_OF_STACK;
  int exact = 0;
  const uint64_t address = _Unwind_GetIPInfo(context, &exact);
  if (address != 0) walked->frames[walked->count++] = {address, 0, exact != 0};
  return _URC_NO_REASON;
}

// libgcc trusts the tables, and those of the last instructions of a function may be wrong. The
// handler that InstallCrashHandler() installs recovers from the resulting crash.
inline thread_local sigjmp_buf before_libgcc;
inline thread_local volatile bool in_libgcc = false;

inline void RecoverFromCrash(int signal) {
  if (in_libgcc) siglongjmp(before_libgcc, 1);
  std::signal(signal, SIG_DFL);  // raised by other code
}

inline void InstallCrashHandler() {
  struct sigaction action = {};
  action.sa_handler = RecoverFromCrash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

// Returns false if libgcc crashed.
inline bool CollectByLibgcc(WalkedFrames* walked) {
  if (sigsetjmp(before_libgcc, 1) != 0) {
    in_libgcc = false;
    return false;
  }
  in_libgcc = true;
  _Unwind_Backtrace(CollectFrame, walked);
  in_libgcc = false;
  return true;
}

// The innermost frame is at different instructions of this function in the three walks, and libgcc
// has no CFA for the outermost.
inline Outcome Compare(const WalkedFrames& own, const WalkedFrames& libgcc, uint32_t* where) {
  const uint32_t common = own.count < libgcc.count ? own.count : libgcc.count;
  for (uint32_t i = 0; i < common; ++i) {
    const NativeFrame &a = own.frames[i], &b = libgcc.frames[i];
    const bool last = i + 1 == libgcc.count || (own.truncated && i + 1 == own.count);
    *where = i;
    if (i > 0 && (a.address != b.address || a.exact != b.exact)) return Outcome::kDifferent;
    if (!last && a.cfa != b.cfa) return Outcome::kDifferent;
  }
  *where = common;
  if (own.truncated && own.count >= 256) return Outcome::kTooDeep;
  if (own.count > libgcc.count) return Outcome::kFurther;
  if (own.truncated) return Outcome::kTruncated;
  return own.count == libgcc.count ? Outcome::kSame : Outcome::kDifferent;
}

// Removes the innermost frames, up to the one whose part of the stack contains `sp`.
inline void DropUntil(uint64_t sp, WalkedFrames* walked) {
  uint32_t first = 0;
  while (first < walked->count && walked->frames[first].cfa <= sp) ++first;
  walked->count -= first;
  for (uint32_t i = 0; i < walked->count; ++i) walked->frames[i] = walked->frames[i + first];
}

// Returns whether two of our walks from the same registers differ, as far as both can go.
inline bool Differ(const WalkedFrames& one, const WalkedFrames& other) {
  constexpr uint32_t kComparable = 256;
  const uint32_t n = one.count < other.count ? one.count : other.count;
  bool differ = n < kComparable && (one.count != other.count || one.truncated != other.truncated);
  for (uint32_t i = 0; i < n; ++i) {
    const NativeFrame &a = one.frames[i], &b = other.frames[i];
    differ |= a.address != b.address || a.cfa != b.cfa || a.exact != b.exact;
  }
  return differ;
}

// Returns whether a walk that keeps all frames succeeds and differs from one by rules. It leaves
// out the innermost frame.
__attribute__((noinline)) inline bool KeepsOtherFrames(const Registers& here,
                                                       const CallerRegisters& caller,
                                                       const WalkedFrames& by_rules) {
  NativeWalk walk(here, NativeWalk::Known::kEarlierWalks);
  if (!walk.KeepAll(caller)) return false;
  KnownPath path = *walk.path();
  const uint32_t count = path.Count();
  bool differ = count + 1 != by_rules.count;
  for (uint32_t i = 0; !differ && i < count; ++i, path.DropFirst())
    differ = path.first()->behind != by_rules.frames[i + 1].address;
  return differ;
}

struct Comparison {
  WalkedFrames own, after_last, slow, libgcc;  // after_last: with the frames of earlier walks
  Outcome outcome;
  uint32_t where;  // the first frame that differs
  bool after_last_differs, slow_differs;
};

__attribute__((noinline)) inline void CompareWalks(bool with_slow, Comparison* c) {
  const Registers here = CaptureRegisters();
  const CallerRegisters caller = CaptureCaller();
  CollectByRules(here, NativeWalk::Known::kNothing, &c->own);
  c->after_last_differs = KeepsOtherFrames(here, caller, c->own);
  CollectByRules(here, NativeWalk::Known::kEarlierWalks, &c->after_last);
  c->after_last_differs |= Differ(c->own, c->after_last);
  const bool stands = CollectByLibgcc(&c->libgcc);
  DropUntil(here.sp, &c->libgcc);
  c->outcome = Compare(c->own, c->libgcc, &c->where);
  if (!stands) c->outcome = Outcome::kLibgccCrashed;
  c->slow_differs = false;
  if (!with_slow) return;
  SlowWalk slow(here, StackRange::Around(here.sp));
  Collect(&slow, &c->slow);
  c->slow_differs = Differ(c->own, c->slow);
}

}  // namespace gmt::preload::testing

#endif  // GMT_PRELOAD_STACKS_UNWIND_TESTING_COMPARE_WALKS_H_
