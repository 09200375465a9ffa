// preload/stacks/unwind/expression.h
//
// Evaluates DWARF expressions as used in call frame information (DWARF 5, 2.5), for any
// representation of numbers: actual numbers in the slow walk, symbols when an expression is turned
// into a rule.
//
// A Machine has
//   using Value;
//   Value Constant(uint64_t);
//   bool Register(uint64_t number, Value*);        false: unknown
//   bool Load(const Value&, uint32_t bytes, Value*);
//   bool Binary(uint8_t operation, const Value& a, const Value& b, Value*);   a below b
//   bool Truth(const Value&, bool*);
// If one of these returns false, the evaluation ends.

#ifndef GMT_PRELOAD_STACKS_UNWIND_EXPRESSION_H_
#define GMT_PRELOAD_STACKS_UNWIND_EXPRESSION_H_

#include <stdint.h>

#include "preload/stacks/unwind/byte_reader.h"

namespace gmt::preload {

// Operations with two operands, numbered as in DWARF.
enum Operation : uint8_t {
  kAnd = 0x1a,
  kDivide = 0x1b,
  kMinus = 0x1c,
  kModulo = 0x1d,
  kTimes = 0x1e,
  kOr = 0x21,
  kPlus = 0x22,
  kShiftLeft = 0x24,
  kShiftRight = 0x25,
  kShiftRightSigned = 0x26,
  kXor = 0x27,
  kEqual = 0x29,
  kAtLeast = 0x2a,
  kGreater = 0x2b,
  kAtMost = 0x2c,
  kLess = 0x2d,
  kUnequal = 0x2e,
};

// Carries out the operation on actual numbers. Returns false for a division by zero.
inline bool Calculate(uint8_t operation, uint64_t a, uint64_t b, uint64_t* result) {
  const auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
  switch (operation) {
    case kAnd:
      return *result = a & b, true;
    case kDivide:
      if (b == 0 || (sa == INT64_MIN && sb == -1)) return false;
      return *result = static_cast<uint64_t>(sa / sb), true;
    case kMinus:
      return *result = a - b, true;
    case kModulo:
      if (b == 0) return false;
      return *result = a % b, true;
    case kTimes:
      return *result = a * b, true;
    case kOr:
      return *result = a | b, true;
    case kPlus:
      return *result = a + b, true;
    case kShiftLeft:
      return *result = b < 64 ? a << b : 0, true;
    case kShiftRight:
      return *result = b < 64 ? a >> b : 0, true;
    case kShiftRightSigned:
      return *result = static_cast<uint64_t>(sa >> (b < 64 ? b : 63)), true;
    case kXor:
      return *result = a ^ b, true;
    case kEqual:
      return *result = a == b, true;
    case kAtLeast:
      return *result = sa >= sb, true;
    case kGreater:
      return *result = sa > sb, true;
    case kAtMost:
      return *result = sa <= sb, true;
    case kLess:
      return *result = sa < sb, true;
    case kUnequal:
      return *result = a != b, true;
    default:
      return false;
  }
}

template <typename Machine>
class ExpressionRun {
 public:
  using Value = typename Machine::Value;

  ExpressionRun(Machine* machine, ByteReader code)
      : machine_(machine), begin_(code.at()), code_(code) {}

  // Evaluates the expression. `first`, if given, is on the stack at the beginning; the result is
  // the top of the stack at the end.
  bool Evaluate(const Value* first, Value* result) {
    if (first != nullptr) Push(*first);
    // Expressions may jump backwards; real ones take only a few steps.
    for (uint32_t steps = 0; !code_.empty(); ++steps) {
      if (steps == kMaxSteps || !Step(code_.Fixed<uint8_t>())) return false;
    }
    return code_.ok() && !failed_ && Pop(result);
  }

 private:
  static constexpr uint32_t kMaxSteps = 256, kStackDepth = 16;

  bool Step(uint8_t op) {
    if (op >= 0x30 && op <= 0x4f) return PushConstant(op - 0x30u);  // DW_OP_lit
    if (op >= 0x50 && op <= 0x6f) return PushRegister(op - 0x50u, 0);
    if (op >= 0x70 && op <= 0x8f) return PushRegister(op - 0x70u, code_.Sleb());  // DW_OP_breg
    switch (op) {
      case 0x03:  // DW_OP_addr, const1u ... consts
        return PushConstant(code_.Fixed<uint64_t>());
      case 0x08:
        return PushConstant(code_.Fixed<uint8_t>());
      case 0x09:
        return PushConstant(Signed(code_.Fixed<int8_t>()));
      case 0x0a:
        return PushConstant(code_.Fixed<uint16_t>());
      case 0x0b:
        return PushConstant(Signed(code_.Fixed<int16_t>()));
      case 0x0c:
        return PushConstant(code_.Fixed<uint32_t>());
      case 0x0d:
        return PushConstant(Signed(code_.Fixed<int32_t>()));
      case 0x0e:
      case 0x0f:
        return PushConstant(code_.Fixed<uint64_t>());
      case 0x10:
        return PushConstant(code_.Uleb());
      case 0x11:
        return PushConstant(Signed(code_.Sleb()));
      case 0x90:  // DW_OP_regx, bregx
        return PushRegister(code_.Uleb(), 0);
      case 0x92: {
        const uint64_t number = code_.Uleb();
        return PushRegister(number, code_.Sleb());
      }
      case 0x96:  // DW_OP_nop
        return true;
      default:
        return StackStep(op) || Calculation(op);
    }
  }

  bool StackStep(uint8_t op) {
    Value a, b, c;
    switch (op) {
      case 0x12:  // DW_OP_dup, drop, over, pick, swap, rot
        return Pick(0);
      case 0x13:
        return Pop(&a);
      case 0x14:
        return Pick(1);
      case 0x15:
        return Pick(code_.Fixed<uint8_t>());
      case 0x16:
        return Pop(&a) && Pop(&b) && Push(a) && Push(b);
      case 0x17:
        return Pop(&a) && Pop(&b) && Pop(&c) && Push(a) && Push(c) && Push(b);
      case 0x06:  // DW_OP_deref, deref_size
        return Pop(&a) && machine_->Load(a, 8, &b) && Push(b);
      case 0x94: {
        const auto bytes = code_.Fixed<uint8_t>();
        return Pop(&a) && machine_->Load(a, bytes, &b) && Push(b);
      }
      case 0x2f:  // DW_OP_skip, bra
        return Jump(code_.Fixed<int16_t>());
      case 0x28: {
        const auto distance = code_.Fixed<int16_t>();
        bool truth;
        return Pop(&a) && machine_->Truth(a, &truth) && (!truth || Jump(distance));
      }
      default:
        return false;
    }
  }

  bool Calculation(uint8_t op) {
    Value a, b, r;
    if (failed_) return false;
    switch (op) {
      case 0x19: {  // DW_OP_abs
        bool negative;
        return Pick(0) && PushConstant(0) && Calculation(kLess) && Pop(&a) &&
               machine_->Truth(a, &negative) && (!negative || Calculation(0x1f));
      }
      case 0x1f:  // DW_OP_neg
        return Pop(&a) && machine_->Binary(kMinus, machine_->Constant(0), a, &r) && Push(r);
      case 0x20:  // DW_OP_not
        return Pop(&a) && machine_->Binary(kXor, a, machine_->Constant(~uint64_t{0}), &r) &&
               Push(r);
      case 0x23:  // DW_OP_plus_uconst
        return Pop(&a) && machine_->Binary(kPlus, a, machine_->Constant(code_.Uleb()), &r) &&
               Push(r);
      default:
        return Pop(&b) && Pop(&a) && machine_->Binary(op, a, b, &r) && Push(r);
    }
  }

  static uint64_t Signed(int64_t number) { return static_cast<uint64_t>(number); }

  bool Jump(int64_t distance) {
    code_.Jump(begin_, distance);
    return code_.ok();
  }
  bool PushRegister(uint64_t number, int64_t offset) {
    Value value, sum;
    return machine_->Register(number, &value) &&
           machine_->Binary(kPlus, value, machine_->Constant(Signed(offset)), &sum) && Push(sum);
  }
  bool PushConstant(uint64_t constant) { return Push(machine_->Constant(constant)); }
  bool Push(const Value& value) {
    if (depth_ == kStackDepth) return failed_ = true, false;
    stack_[depth_++] = value;
    return true;
  }
  bool Pop(Value* value) {
    if (depth_ == 0) return failed_ = true, false;
    *value = stack_[--depth_];
    return true;
  }
  bool Pick(uint32_t below_top) {
    if (below_top >= depth_) return failed_ = true, false;
    return Push(Value(stack_[depth_ - 1 - below_top]));
  }

  Machine* const machine_;
  const uint64_t begin_;
  ByteReader code_;
  Value stack_[kStackDepth] = {};
  uint32_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_EXPRESSION_H_
