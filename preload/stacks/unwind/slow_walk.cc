#include "preload/stacks/unwind/slow_walk.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/base/memory.h"
#include "preload/stacks/unwind/expression.h"
#include "preload/stacks/unwind/frame_pointer.h"

namespace gmt::preload {
namespace {

// Evaluates expressions on the actual numbers of one frame.
class Machine {
 public:
  using Value = uint64_t;
  Machine(const uint64_t* values, uint32_t known, StackRange* range)
      : values_(values), known_(known), range_(range) {}

  static uint64_t Constant(uint64_t number) { return number; }
  bool Register(uint64_t number, uint64_t* value) const {
    if (number >= kRegisterCount || (known_ >> number & 1) == 0) return false;
    *value = values_[number];
    return true;
  }
  bool Load(uint64_t address, uint32_t bytes, uint64_t* value) const {
    if (bytes == 0 || bytes > 8) return false;
    const uint64_t last = address + bytes - 1;
    if (!(range_->Holds(address) && range_->Holds(last)) &&
        !(IsReadable(address) && IsReadable(last))) {
      return false;
    }
    *value = 0;
    for (uint32_t i = bytes; i > 0; --i) {
      *value = *value << 8 | *reinterpret_cast<const volatile uint8_t*>(address + i - 1);
    }
    return true;
  }
  static bool Binary(uint8_t operation, uint64_t a, uint64_t b, uint64_t* result) {
    return Calculate(operation, a, b, result);
  }
  static bool Truth(uint64_t number, bool* truth) { return *truth = number != 0, true; }

 private:
  const uint64_t* const values_;
  const uint32_t known_;
  StackRange* const range_;
};

bool IsWordAligned(uint64_t address) { return (address & 7) == 0; }

}  // namespace

SlowWalk::SlowWalk(const Registers& start, const StackRange& range) : range_(range) {
  Set(kRegisterReturn, start.pc);
  Set(kRegisterSp, start.sp);
  Set(kRegisterBp, start.bp);
  Set(kRegisterBx, start.bx);
  Set(kRegisterR12, start.r12);
  Set(kRegisterR13, start.r13);
  Set(kRegisterR14, start.r14);
  Set(kRegisterR15, start.r15);
}

bool SlowWalk::EndWith(WalkEnd end, NativeFrame* frame) {
  end_ = end;
  return frame->address != 0;
}

bool SlowWalk::FindCfa(const CallFrame& tables, uint64_t* cfa) {
  Machine machine(values_, known_, &range_);
  if (tables.cfa_expression != 0) {
    return ExpressionRun(&machine, tables.ExpressionAt(tables.cfa_expression))
        .Evaluate(nullptr, cfa);
  }
  if (!machine.Register(tables.cfa_register, cfa)) return false;
  *cfa += static_cast<uint64_t>(tables.cfa_offset);
  return true;
}

// Returns false if the caller's return address or stack pointer cannot be determined. Other
// registers that cannot be determined are unknown in the caller.
bool SlowWalk::FindCallers(const CallFrame& tables, uint64_t cfa, SlowWalk* caller) {
  Machine machine(values_, known_, &range_);
  caller->Set(kRegisterSp, cfa);
  for (uint32_t i = 0; i < kRegisterCount; ++i) {
    const SavedRegister& saved = tables.registers[i];
    if (saved.how == Saved::kNot) continue;
    // An undefined register keeps its value: functions declare registers undefined to say that they
    // need not save them.
    if (saved.how == Saved::kUndefined && i != kRegisterReturn) continue;
    uint64_t value = 0;
    bool found = true;
    switch (saved.how) {
      case Saved::kAtCfa:
        found = range_.Reach(cfa + static_cast<uint64_t>(saved.number)) &&
                machine.Load(cfa + static_cast<uint64_t>(saved.number), 8, &value);
        break;
      case Saved::kIsCfa:
        value = cfa + static_cast<uint64_t>(saved.number);
        break;
      case Saved::kRegister:
        found = machine.Register(static_cast<uint64_t>(saved.number), &value);
        break;
      case Saved::kAt:
      case Saved::kIs:
        found =
            ExpressionRun(&machine, tables.ExpressionAt(saved.expression)).Evaluate(&cfa, &value) &&
            (saved.how == Saved::kIs || machine.Load(value, 8, &value));
        break;
      default:
        break;  // an undefined return address: 0
    }
    if (found) {
      caller->Set(i, value);
    } else if (i == kRegisterReturn || i == kRegisterSp) {
      return false;
    } else {
      caller->known_ &= ~(1u << i);
    }
  }
  return true;
}

bool SlowWalk::StepByTables(const CallFrame& tables, NativeFrame* frame) {
  uint64_t cfa;
  const bool outermost = tables.registers[kRegisterReturn].how == Saved::kUndefined;
  if (!FindCfa(tables, &cfa)) {
    return EndWith(outermost ? WalkEnd::kOutermost : WalkEnd::kTruncated, frame);
  }
  if (IsWordAligned(cfa) && (cfa > sp() || tables.is_signal_frame)) frame->cfa = cfa;
  if (outermost) return EndWith(WalkEnd::kOutermost, frame);
  SlowWalk caller = *this;
  caller.known_ &= ~(1u << kRegisterReturn);
  if (!IsWordAligned(cfa) || !FindCallers(tables, cfa, &caller) ||
      (caller.known_ >> kRegisterReturn & 1) == 0 || !IsWordAligned(caller.sp())) {
    return EndWith(WalkEnd::kTruncated, frame);
  }
  if (tables.is_signal_frame) {
    caller.range_ = range_.Holds(caller.sp()) ? range_ : StackRange::Around(caller.sp());
    if (!caller.range_.Holds(caller.sp())) return EndWith(WalkEnd::kTruncated, frame);
  } else if (caller.sp() < sp() || (caller.sp() == sp() && !exact_)) {
    // If a function that returns by a jump was interrupted, nothing of its frame may be left.
    return EndWith(WalkEnd::kTruncated, frame);
  } else {
    caller.range_ = range_;
  }
  caller.exact_ = tables.is_signal_frame;
  caller.end_ = caller.pc() == 0 ? WalkEnd::kOutermost : WalkEnd::kNone;
  *this = caller;
  return true;
}

bool SlowWalk::StepByFramePointer(NativeFrame* frame) {
  Caller caller;
  if (!bp_is_known() || !FindCallerByFramePointer(sp(), bp(), &range_, &caller)) {
    return EndWith(WalkEnd::kTruncated, frame);
  }
  frame->cfa = caller.cfa;
  known_ = 0;  // the other registers are unknown
  Set(kRegisterReturn, caller.pc);
  Set(kRegisterSp, caller.cfa);
  Set(kRegisterBp, caller.bp);
  exact_ = false;
  return true;
}

bool SlowWalk::Next(NativeFrame* frame) {
  if (end_ != WalkEnd::kNone) return false;
  *frame = {pc(), sp(), exact_};
  CallFrame tables;
  bool described;
  switch (FindCallFrame(exact_ ? pc() : pc() - 1, &tables)) {
    case FoundFrame::kFound:
      return StepByTables(tables, frame);
    case FoundFrame::kNoTable:
      return StepByFramePointer(frame);
    case FoundFrame::kNoCaller:
      return EndWith(WalkEnd::kOutermost, frame);
    case FoundFrame::kNoModule:
      if (exact_ || IsBehindCall(pc(), &described)) return StepByFramePointer(frame);
      [[fallthrough]];
    case FoundFrame::kNotCode:
    case FoundFrame::kDamaged:
      break;
  }
  frame->address = 0;
  return EndWith(WalkEnd::kTruncated, frame);
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
