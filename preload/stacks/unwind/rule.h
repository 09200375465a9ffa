// preload/stacks/unwind/rule.h
//
// Rule: a frame's path to its caller in eight bytes. It exists for 99.9 % of the addresses in the
// libraries of a training program; the others need the slow walk
// (preload/stacks/unwind/slow_walk.h).
//
//   bits   0      base: 0 stack pointer, 1 frame pointer
//          1      the caller's frame pointer was saved at CFA + `saved_at`
//          2-4    shape
//          5      ... was saved at this frame's frame pointer + `saved_at`
//          6      set in every rule, so that no rule is 0
//          8-23   saved_at
//          24-39  addend   kLoaded: CFA = memory at (base + offset), + addend
//          40-63  offset   CFA = base + offset
//
// All numbers are signed and count bytes. The return address is at CFA - 8.

#ifndef GMT_PRELOAD_STACKS_UNWIND_RULE_H_
#define GMT_PRELOAD_STACKS_UNWIND_RULE_H_

#include <stdint.h>

#include "preload/stacks/unwind/registers.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

class Rule {
 public:
  enum Shape : uint32_t {
    kPlain = 0,
    kLoaded = 1,     // functions that realign the stack, hand-written assembly
    kSignal = 2,     // all registers are in the context pushed by the kernel
    kOutermost = 3,  // there is no caller
    kSlow = 4,       // none of these: use the slow walk
    kNoTable = 5,    // code without call frame information
    kNowhere = 6,    // not code: the caller was determined wrongly
  };

  constexpr Rule() = default;
  static constexpr Rule FromBits(uint64_t bits) {
    Rule r;
    r.bits_ = bits;
    return r;
  }
  static constexpr Rule OfShape(Shape shape) {
    return FromBits(kValid | uint64_t{shape} << kShapeShift);
  }
  // CFA = base + offset. kSlow if the offset does not fit.
  static constexpr Rule At(Shape shape, bool from_bp, int64_t offset, int64_t addend) {
    if (!Fits(offset, 24) || !Fits(addend, 16)) return OfShape(kSlow);
    return FromBits(OfShape(shape).bits_ | (from_bp ? kFromBp : 0) |
                    static_cast<uint64_t>(offset) << 40 |
                    (static_cast<uint64_t>(addend) & 0xffff) << 24);
  }
  constexpr Rule WithBpAtCfa(int64_t offset) const { return WithBp(kBpAtCfa, offset); }
  constexpr Rule WithBpAtBp(int64_t offset) const { return WithBp(kBpAtBp, offset); }

  constexpr uint64_t bits() const { return bits_; }
  constexpr Shape shape() const { return static_cast<Shape>(bits_ >> kShapeShift & 7); }
  // The base is a register, and the frame pointer is saved at CFA + saved_at or unchanged.
  constexpr bool IsSimple() const { return (bits_ & (kShapeMask | kBpAtBp)) == 0; }

  constexpr bool from_bp() const { return (bits_ & kFromBp) != 0; }
  constexpr bool bp_at_cfa() const { return (bits_ & kBpAtCfa) != 0; }
  constexpr bool bp_at_bp() const { return (bits_ & kBpAtBp) != 0; }
  constexpr int64_t offset() const { return static_cast<int64_t>(bits_) >> 40; }
  constexpr int64_t addend() const { return static_cast<int16_t>(bits_ >> 24); }
  constexpr int64_t saved_at() const { return static_cast<int16_t>(bits_ >> 8); }

  friend constexpr bool operator==(Rule a, Rule b) { return a.bits_ == b.bits_; }

 private:
  static constexpr uint64_t kFromBp = 1, kBpAtCfa = 2, kShapeMask = 7 << 2, kBpAtBp = 1 << 5,
                            kValid = 1 << 6;
  static constexpr uint32_t kShapeShift = 2;

  static constexpr bool Fits(int64_t number, uint32_t bits) {
    const int64_t limit = int64_t{1} << (bits - 1);
    return number >= -limit && number < limit;
  }
  constexpr Rule WithBp(uint64_t how, int64_t offset) const {
    if (!Fits(offset, 16)) return OfShape(kSlow);
    return FromBits(bits_ | how | (static_cast<uint64_t>(offset) & 0xffff) << 8);
  }

  uint64_t bits_ = 0;
};

// Returns the rule of the instruction that ends at `behind`, or that contains `behind` - 1. For a
// frame that has made a call, `behind` is its return address; for one interrupted by a signal, the
// address of the instruction plus one.
Rule FindRule(uint64_t behind);

// Converts the contents of the tables at `pc` to a rule.
struct CallFrame;
Rule ToRule(const CallFrame& frame, uint64_t pc);

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_RULE_H_
