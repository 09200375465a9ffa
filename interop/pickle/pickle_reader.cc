#include "interop/pickle/pickle_reader.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interop/pickle/pickle_opcodes.h"

namespace gmt::interop {
namespace {

using absl::string_view;
using Op = PickleOpcode;
using Type = PickleValue::Type;

constexpr int kFirstProtocol = 2, kLastProtocol = 5;

uint64_t MachineMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
}

uint64_t Little(string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Runs the stack machine. Steps return false on failure; status_ then has the reason.
class Machine {
 public:
  Machine(ByteStream& bytes, string_view name, const PickleLimits& limits, PickleTree* tree)
      : bytes_(bytes), name_(name), limits_(limits), tree_(*tree) {
    if (limits_.memory == 0) limits_.memory = MachineMemory() / 4 * 3;
  }

  absl::StatusOr<PickleValue> Run() {
    if (!TakeProtocol()) return status_;
    for (;;) {
      opcode_at_ = offset();
      string_view byte;
      if (!Take(1, &byte)) return status_;
      const auto opcode = static_cast<Op>(static_cast<uint8_t>(byte[0]));
      if (opcode == Op::kStop) break;
      if (!Step(opcode)) return status_;
    }
    PickleValue value{};
    if (!marks_.empty()) return Error("STOP inside a container");
    if (!Pop(&value)) return status_;
    return value;
  }

 private:
  // ---- Bytes -----------------------------------------------------------------------------------

  uint64_t offset() const { return piece_offset_ + at_; }

  absl::Status Error(const std::string& what) {
    status_ = absl::InvalidArgumentError(absl::StrCat(name_, ": byte ", opcode_at_, ": ", what));
    return status_;
  }
  bool Fail(const std::string& what) {
    Error(what).IgnoreError();
    return false;
  }

  bool Refill() {
    piece_offset_ += piece_.size();
    at_ = 0;
    absl::StatusOr<string_view> piece = bytes_.Next();
    if (!piece.ok()) {
      piece_ = {};
      status_ = piece.status();
      return false;
    }
    piece_ = *piece;
    if (piece_.empty())
      return Fail(absl::StrCat("the pickle ends at byte ", piece_offset_, ", before its STOP"));
    if (piece_offset_ + piece_.size() > limits_.bytes)
      return Fail(absl::StrCat("the pickle has more than ", limits_.bytes, " bytes"));
    const uint64_t memory = tree_.memory() + 8 * (stack_.capacity() + memo_.capacity());
    if (memory > limits_.memory)
      return Fail(absl::StrCat("the contents of the pickle take more than ", limits_.memory,
                               " bytes of memory"));
    return true;
  }

  // Takes the next `count` bytes, which are valid until the next call.
  bool Take(uint64_t count, string_view* taken) {
    if (count <= piece_.size() - at_) {
      *taken = piece_.substr(at_, count);
      at_ += count;
      return true;
    }
    if (count > limits_.text)
      return Fail(
          absl::StrCat("a text of ", count, " bytes; at most ", limits_.text, " are supported"));
    gathered_.clear();
    while (gathered_.size() < count) {
      if (at_ == piece_.size() && !Refill()) return false;
      const string_view part = piece_.substr(at_, count - gathered_.size());
      gathered_.append(part.data(), part.size());
      at_ += part.size();
    }
    *taken = gathered_;
    return true;
  }

  bool TakeNumber(uint64_t bytes, uint64_t* number) {
    string_view taken;
    if (!Take(bytes, &taken)) return false;
    *number = Little(taken);
    return true;
  }

  // Takes bytes that follow their length, which has `length_bytes`.
  bool TakeText(uint64_t length_bytes, string_view* text) {
    uint64_t length;
    return TakeNumber(length_bytes, &length) && Take(length, text);
  }

  bool TakeProtocol() {
    string_view head;
    if (!Take(2, &head)) return false;
    if (LooksLikePickle(head)) return true;
    if (head[0] != '\x80') return Fail("not a pickle of protocol 2 or later");
    return Fail(absl::StrCat("pickle protocol ", static_cast<uint8_t>(head[1]), "; ",
                             kFirstProtocol, " to ", kLastProtocol, " are supported"));
  }

  // ---- Stack -----------------------------------------------------------------------------------

  uint64_t StackBase() const { return marks_.empty() ? 0 : marks_.back(); }
  uint64_t AboveMark() const { return stack_.size() - StackBase(); }

  bool Push(PickleValue value) {
    stack_.push_back(value);
    return true;
  }
  bool Pop(PickleValue* value) {
    if (AboveMark() == 0) return Fail("a value is missing on the stack");
    *value = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool PushMark() {
    if (marks_.size() >= limits_.nesting)
      return Fail(absl::StrCat("containers are nested deeper than ", limits_.nesting));
    marks_.push_back(stack_.size());
    return true;
  }

  // Makes a new container of the topmost `count` values.
  bool Gather(Type type, uint64_t count) {
    if (AboveMark() < count) return Fail("a value is missing on the stack");
    const uint64_t first = stack_.size() - count;
    if (type == Type::kDict && count % 2 != 0) return Fail("a key without a value");
    const PickleValue container = tree_.AddContainer(type);
    if (!tree_.Extend(container, stack_.data() + first, count)) return TooLong();
    stack_.resize(first);
    return Push(container);
  }
  // Makes a container of all values above the mark, and removes the mark.
  bool GatherMarked(Type type) {
    if (marks_.empty()) return Fail("a MARK is missing");
    const uint64_t count = AboveMark();
    marks_.pop_back();
    return Gather(type, count);
  }

  // Puts the topmost `count` values into the container below them.
  bool Fill(Type type, uint64_t count) {
    if (AboveMark() <= count) return Fail("a value is missing on the stack");
    const uint64_t first = stack_.size() - count;
    const PickleValue container = stack_[first - 1];
    if (!container.is(type))
      return Fail(
          absl::StrCat("items for a ", TypeName(type), " put into a ", TypeName(container.type())));
    if (type == Type::kDict && count % 2 != 0) return Fail("a key without a value");
    if (!tree_.Extend(container, stack_.data() + first, count)) return TooLong();
    stack_.resize(first);
    return true;
  }
  bool FillMarked(Type type) {
    if (marks_.empty()) return Fail("a MARK is missing");
    const uint64_t count = AboveMark();
    marks_.pop_back();
    return Fill(type, count);
  }
  bool TooLong() { return Fail("a container of more than 2^31 values"); }

  // ---- Memo ------------------------------------------------------------------------------------

  // Writers number memos from 0, and every entry takes at least one byte.
  bool Remember(uint64_t index) {
    if (AboveMark() == 0) return Fail("a value is missing on the stack");
    if (index > offset()) return Fail(absl::StrCat("memo ", index, " is out of order"));
    if (index >= memo_.size()) memo_.resize(index + 1, Unset());
    if (memo_[index] == Unset()) ++remembered_;
    memo_[index] = stack_.back();
    return true;
  }
  bool Recall(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == Unset())
      return Fail(absl::StrCat("memo ", index, " was never set"));
    return Push(memo_[index]);
  }
  static PickleValue Unset() { return {Type::kNone, 1}; }

  // ---- Opcodes ---------------------------------------------------------------------------------

  bool Step(Op opcode) {
    switch (opcode) {
      case Op::kProto:
      case Op::kFrame: {
        uint64_t ignored;
        return TakeNumber(opcode == Op::kProto ? 1 : 8, &ignored);
      }
      case Op::kMark:
        return PushMark();
      case Op::kPop:
        return DoPop();
      case Op::kPopMark:
        return DoPopMark();
      case Op::kDup:
        if (AboveMark() == 0) return Fail("a value is missing on the stack");
        return Push(stack_.back());
      case Op::kNone:
        return Push(PickleValue());
      case Op::kNewTrue:
        return Push({Type::kBool, 1});
      case Op::kNewFalse:
        return Push({Type::kBool, 0});
      case Op::kBinInt:
        return PushInt(4, true);
      case Op::kBinInt1:
        return PushInt(1, false);
      case Op::kBinInt2:
        return PushInt(2, false);
      case Op::kLong1:
        return PushLong(1);
      case Op::kLong4:
        return PushLong(4);
      case Op::kBinFloat:
        return PushFloat();
      case Op::kShortBinUnicode:
      case Op::kShortBinString:
        return PushText(Type::kString, 1);
      case Op::kBinUnicode:
      case Op::kBinString:
        return PushText(Type::kString, 4);
      case Op::kBinUnicode8:
        return PushText(Type::kString, 8);
      case Op::kShortBinBytes:
        return PushText(Type::kBytes, 1);
      case Op::kBinBytes:
        return PushText(Type::kBytes, 4);
      case Op::kBinBytes8:
      case Op::kByteArray8:
        return PushText(Type::kBytes, 8);
      case Op::kEmptyDict:
        return Push(tree_.AddContainer(Type::kDict));
      case Op::kEmptyList:
        return Push(tree_.AddContainer(Type::kList));
      case Op::kEmptyTuple:
        return Push(tree_.AddContainer(Type::kTuple));
      case Op::kDict:
        return GatherMarked(Type::kDict);
      case Op::kList:
        return GatherMarked(Type::kList);
      case Op::kTuple:
        return GatherMarked(Type::kTuple);
      case Op::kTuple1:
        return Gather(Type::kTuple, 1);
      case Op::kTuple2:
        return Gather(Type::kTuple, 2);
      case Op::kTuple3:
        return Gather(Type::kTuple, 3);
      case Op::kSetItem:
        return Fill(Type::kDict, 2);
      case Op::kSetItems:
        return FillMarked(Type::kDict);
      case Op::kAppend:
        return Fill(Type::kList, 1);
      case Op::kAppends:
        return FillMarked(Type::kList);
      case Op::kBinGet:
      case Op::kLongBinGet:
      case Op::kBinPut:
      case Op::kLongBinPut:
        return DoMemo(opcode);
      case Op::kMemoize:
        return Remember(remembered_);
      default:
        return Refuse(opcode);
    }
  }

  bool DoPop() {
    if (AboveMark() > 0) {
      stack_.pop_back();
      return true;
    }
    if (marks_.empty()) return Fail("a value is missing on the stack");
    marks_.pop_back();
    return true;
  }
  bool DoPopMark() {
    if (marks_.empty()) return Fail("a MARK is missing");
    stack_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }

  bool DoMemo(Op opcode) {
    const bool is_short = opcode == Op::kBinGet || opcode == Op::kBinPut;
    uint64_t index;
    if (!TakeNumber(is_short ? 1 : 4, &index)) return false;
    const bool is_get = opcode == Op::kBinGet || opcode == Op::kLongBinGet;
    return is_get ? Recall(index) : Remember(index);
  }

  bool PushInt(uint64_t bytes, bool is_signed) {
    uint64_t number;
    if (!TakeNumber(bytes, &number)) return false;
    return Push(
        tree_.AddInt(is_signed ? static_cast<int32_t>(number) : static_cast<int64_t>(number)));
  }

  // A two's complement number of any length. If it exceeds 64 bits, it becomes a number without a
  // value.
  bool PushLong(uint64_t length_bytes) {
    string_view bytes;
    if (!TakeText(length_bytes, &bytes)) return false;
    if (bytes.empty()) return Push(tree_.AddInt(0));
    const bool negative = (static_cast<uint8_t>(bytes.back()) & 0x80) != 0;
    const char sign = negative ? '\xff' : '\0';
    while (bytes.size() > 8 && bytes.back() == sign) bytes.remove_suffix(1);
    if (bytes.size() > 8) return Push(tree_.AddHugeInt());
    const uint64_t number = Little(bytes);
    if (!negative) return Push(tree_.AddUnsigned(number));
    const uint64_t above = bytes.size() == 8 ? 0 : ~uint64_t{0} << (8 * bytes.size());
    const auto value = static_cast<int64_t>(number | above);
    return Push(value < 0 ? tree_.AddInt(value) : tree_.AddHugeInt());
  }

  bool PushFloat() {  // the only big-endian number of the format
    string_view bytes;
    if (!Take(8, &bytes)) return false;
    uint64_t bits = 0;
    for (char byte : bytes) bits = bits << 8 | static_cast<uint8_t>(byte);
    return Push(tree_.AddFloat(std::bit_cast<double>(bits)));
  }

  bool PushText(Type type, uint64_t length_bytes) {
    string_view text;
    if (!TakeText(length_bytes, &text)) return false;
    return Push(type == Type::kString ? tree_.AddString({text.data(), text.size()})
                                      : tree_.AddBytes({text.data(), text.size()}));
  }

  bool Refuse(Op opcode) {
    const PickleOpcodeInfo info = InfoOf(opcode);
    const std::string name(info.name);
    switch (info.use) {
      case PickleUse::kCode:
        return Fail(absl::StrCat("opcode ", name,
                                 " would run code when Python loads this file; nothing of it was "
                                 "run. A memory snapshot is plain data"));
      case PickleUse::kNoData:
        return Fail(absl::StrCat("opcode ", name, ": memory snapshots do not have such values"));
      case PickleUse::kText:
        return Fail(absl::StrCat("opcode ", name, " of pickle protocol 0, which is not supported"));
      default:
        return Fail(absl::StrCat("0x", absl::Hex(static_cast<uint8_t>(opcode), absl::kZeroPad2),
                                 " is not a pickle opcode"));
    }
  }

  ByteStream& bytes_;
  const string_view name_;
  PickleLimits limits_;
  PickleTree& tree_;

  string_view piece_;
  uint64_t at_ = 0;            // in piece_
  uint64_t piece_offset_ = 0;  // offset of piece_ in the pickle
  uint64_t opcode_at_ = 0;
  std::string gathered_;  // data that spans several pieces
  absl::Status status_;

  std::vector<PickleValue> stack_;
  std::vector<uint64_t> marks_;  // sizes of the stack
  std::vector<PickleValue> memo_;
  uint64_t remembered_ = 0;
};

}  // namespace

absl::StatusOr<PickleValue> ReadPickle(ByteStream& bytes, string_view name,
                                       const PickleLimits& limits, PickleTree* tree) {
  return Machine(bytes, name, limits, tree).Run();
}

bool LooksLikePickle(string_view first_bytes) {
  return first_bytes.size() >= 2 && first_bytes[0] == '\x80' && first_bytes[1] >= kFirstProtocol &&
         first_bytes[1] <= kLastProtocol;
}

}  // namespace gmt::interop
