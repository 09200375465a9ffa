#include "preload/stacks/unwind/rule.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/stacks/unwind/call_frame.h"
#include "preload/stacks/unwind/expression.h"

namespace gmt::preload {
namespace {

// A number of which only the form is known: a constant, register + constant, or memory at (register
// + constant) + constant.
struct Symbol {
  enum Form : uint8_t { kConstant, kRegister, kMemory } form = kConstant;
  bool is_bp = false;  // otherwise the stack pointer
  int64_t offset = 0;  // added to the register; or the constant itself
  int64_t addend = 0;  // added to the loaded value
};

class SymbolicMachine {
 public:
  using Value = Symbol;
  explicit SymbolicMachine(uint64_t pc) : pc_(pc) {}

  static Symbol Constant(uint64_t number) {
    return {Symbol::kConstant, false, static_cast<int64_t>(number), 0};
  }
  // The expression for procedure linkage tables uses the instruction's address. That is pc itself:
  // this code makes no calls, so a walk only passes it after a signal.
  bool Register(uint64_t number, Symbol* s) const {
    if (number == kRegisterReturn) return *s = Constant(pc_), true;
    if (number != kRegisterSp && number != kRegisterBp) return false;
    *s = {Symbol::kRegister, number == kRegisterBp, 0, 0};
    return true;
  }
  static bool Load(const Symbol& address, uint32_t bytes, Symbol* s) {
    if (address.form != Symbol::kRegister || bytes != 8) return false;
    *s = {Symbol::kMemory, address.is_bp, address.offset, 0};
    return true;
  }
  static bool Binary(uint8_t operation, const Symbol& a, const Symbol& b, Symbol* s) {
    if (a.form == Symbol::kConstant && b.form == Symbol::kConstant) {
      uint64_t number;
      if (!Calculate(operation, static_cast<uint64_t>(a.offset), static_cast<uint64_t>(b.offset),
                     &number)) {
        return false;
      }
      *s = Constant(number);
      return true;
    }
    if (operation == kPlus && a.form == Symbol::kConstant) return Add(b, a.offset, s);
    if (b.form != Symbol::kConstant) return false;
    if (operation == kPlus) return Add(a, b.offset, s);
    return operation == kMinus && b.offset != INT64_MIN && Add(a, -b.offset, s);
  }
  static bool Truth(const Symbol& s, bool* truth) {
    *truth = s.offset != 0;
    return s.form == Symbol::kConstant;
  }

 private:
  static bool Add(const Symbol& a, int64_t number, Symbol* s) {
    *s = a;
    int64_t* place = a.form == Symbol::kMemory ? &s->addend : &s->offset;
    return !__builtin_add_overflow(*place, number, place);
  }

  const uint64_t pc_;
};

bool Evaluate(const CallFrame& frame, uint64_t expression, uint64_t pc, Symbol* result) {
  SymbolicMachine machine(pc);
  ExpressionRun run(&machine, frame.ExpressionAt(expression));
  return run.Evaluate(nullptr, result);
}

bool FindCfa(const CallFrame& frame, uint64_t pc, Symbol* cfa) {
  if (frame.cfa_expression != 0) return Evaluate(frame, frame.cfa_expression, pc, cfa);
  SymbolicMachine machine(pc);
  return machine.Register(frame.cfa_register, cfa) && cfa->form == Symbol::kRegister &&
         SymbolicMachine::Binary(
             kPlus, *cfa, SymbolicMachine::Constant(static_cast<uint64_t>(frame.cfa_offset)), cfa);
}

bool IsWordOffset(int64_t number) { return (number & 7) == 0; }

bool IsKernelContext(const CallFrame& frame, uint64_t pc, const Symbol& cfa) {
  const auto saved_at = [&](uint32_t which, int64_t offset) {
    const SavedRegister& r = frame.registers[which];
    Symbol s;
    return r.how == Saved::kAt && Evaluate(frame, r.expression, pc, &s) &&
           s.form == Symbol::kRegister && !s.is_bp && s.offset == offset;
  };
  return frame.is_signal_frame && cfa.form == Symbol::kMemory && !cfa.is_bp &&
         cfa.offset == kContextSp && cfa.addend == 0 && saved_at(kRegisterBp, kContextBp) &&
         saved_at(kRegisterReturn, kContextPc);
}

Rule WithSavedBp(const CallFrame& frame, uint64_t pc, Rule rule) {
  const SavedRegister& bp = frame.registers[kRegisterBp];
  Symbol s;
  switch (bp.how) {
    case Saved::kNot:
    case Saved::kUndefined:
      return rule;
    case Saved::kAtCfa:
      return bp.number < 0 && IsWordOffset(bp.number) ? rule.WithBpAtCfa(bp.number)
                                                      : Rule::OfShape(Rule::kSlow);
    case Saved::kAt:
      if (Evaluate(frame, bp.expression, pc, &s) && s.form == Symbol::kRegister && s.is_bp &&
          IsWordOffset(s.offset)) {
        return rule.WithBpAtBp(s.offset);
      }
      [[fallthrough]];
    default:
      return Rule::OfShape(Rule::kSlow);
  }
}

}  // namespace

Rule ToRule(const CallFrame& frame, uint64_t pc) {
  const Rule slow = Rule::OfShape(Rule::kSlow);
  Symbol cfa;
  const bool known = FindCfa(frame, pc, &cfa) && cfa.form != Symbol::kConstant;
  const SavedRegister& caller = frame.registers[kRegisterReturn];
  if (known && IsKernelContext(frame, pc, cfa)) return Rule::OfShape(Rule::kSignal);
  if (caller.how == Saved::kUndefined) {
    const bool simple = known && cfa.form == Symbol::kRegister && IsWordOffset(cfa.offset);
    const Rule rule = simple ? Rule::At(Rule::kOutermost, cfa.is_bp, cfa.offset, 0) : slow;
    return rule == slow ? Rule::OfShape(Rule::kOutermost) : rule;
  }
  if (!known || frame.is_signal_frame || frame.registers[kRegisterSp].how != Saved::kNot ||
      caller.how != Saved::kAtCfa || caller.number != -8 || !IsWordOffset(cfa.offset) ||
      !IsWordOffset(cfa.addend)) {
    return slow;
  }
  const Rule rule = Rule::At(cfa.form == Symbol::kMemory ? Rule::kLoaded : Rule::kPlain, cfa.is_bp,
                             cfa.offset, cfa.addend);
  return rule == slow ? slow : WithSavedBp(frame, pc, rule);
}

Rule FindRule(uint64_t behind) {
  const uint64_t pc = behind - 1;
  CallFrame frame;
  switch (FindCallFrame(pc, &frame)) {
    case FoundFrame::kFound:
      return ToRule(frame, pc);
    case FoundFrame::kNoTable:
      return Rule::OfShape(Rule::kNoTable);
    case FoundFrame::kNoCaller:
      return Rule::OfShape(Rule::kOutermost);
    case FoundFrame::kNoModule:
    case FoundFrame::kNotCode:
    case FoundFrame::kDamaged:
      break;
  }
  return Rule::OfShape(Rule::kNowhere);
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
