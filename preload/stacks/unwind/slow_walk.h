// preload/stacks/unwind/slow_walk.h
//
// SlowWalk: the general walk without a cache. It tracks all registers through the call frame
// information itself, with any expression. NativeWalk uses it if a rule of eight bytes is
// insufficient; tests use it to check NativeWalk.
//
// Thread safety: as NativeWalk. Cost: about a fifth of a microsecond per frame.

#ifndef GMT_PRELOAD_STACKS_UNWIND_SLOW_WALK_H_
#define GMT_PRELOAD_STACKS_UNWIND_SLOW_WALK_H_

#include <stdint.h>

#include "preload/stacks/unwind/call_frame.h"
#include "preload/stacks/unwind/native_frame.h"
#include "preload/stacks/unwind/registers.h"
#include "preload/stacks/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

class SlowWalk {
 public:
  SlowWalk(const Registers& start, const StackRange& range);

  bool Next(NativeFrame* frame);
  bool ended() const { return end_ != WalkEnd::kNone; }
  bool truncated() const { return end_ == WalkEnd::kTruncated; }

  // The registers of the frame that Next() returns next.
  uint64_t pc() const { return values_[kRegisterReturn]; }
  uint64_t sp() const { return values_[kRegisterSp]; }
  uint64_t bp() const { return values_[kRegisterBp]; }
  bool bp_is_known() const { return (known_ >> kRegisterBp & 1) != 0; }
  bool exact() const { return exact_; }
  const StackRange& range() const { return range_; }

 private:
  bool FindCfa(const CallFrame& tables, uint64_t* cfa);
  bool FindCallers(const CallFrame& tables, uint64_t cfa, SlowWalk* caller);
  bool StepByTables(const CallFrame& tables, NativeFrame* frame);
  bool StepByFramePointer(NativeFrame* frame);
  bool EndWith(WalkEnd end, NativeFrame* frame);
  void Set(uint32_t which, uint64_t value) {
    values_[which] = value;
    known_ |= 1u << which;
  }

  uint64_t values_[kRegisterCount] = {};
  uint32_t known_ = 0;  // a bit per register
  bool exact_ = true;
  WalkEnd end_ = WalkEnd::kNone;
  StackRange range_;
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_SLOW_WALK_H_
