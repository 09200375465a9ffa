#include "interop/pickle/pickle_writer.h"

#include <cstring>

namespace gmt::interop {
namespace {

// Opcodes of protocol 2, with the names of Python's pickletools.
enum Opcode : char {
  kProto = '\x80',
  kStop = '.',
  kMark = '(',
  kEmptyDict = '}',
  kEmptyList = ']',
  kAppends = 'e',
  kSetItems = 'u',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = '\x8a',
  kBinFloat = 'G',
  kNewTrue = '\x88',
  kNewFalse = '\x89',
  kNone = 'N',
  kTuple2 = '\x86',
  kBinUnicode = 'X',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
};
constexpr char kProtocol = 2;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Returns the length of the UTF-8 sequence at the beginning of `text`, or 0 if it is invalid.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and values above U+10FFFF.
  if (length == 3 && ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0)))
    return 0;
  if (length == 4 && ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90)))
    return 0;
  return length;
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    out += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace

PickleWriter::PickleWriter(std::ostream& out) : out_(out) {
  Op(kProto);
  Op(kProtocol);
}

void PickleWriter::Little(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_.put(static_cast<char>(value >> (8 * i)));
}

// Containers are filled in batches, each between a MARK and an APPENDS or SETITEMS.
void PickleWriter::BeforeValue() {
  if (open_.empty()) return;
  Container& container = open_.back();
  if (container.items == (container.is_dict ? 2 * kBatch : kBatch)) {
    Op(container.is_dict ? kSetItems : kAppends);
    container.items = 0;
  }
  if (container.items++ == 0) Op(kMark);
}

void PickleWriter::BeginDict() {
  BeforeValue();
  Op(kEmptyDict);
  open_.push_back({true, 0});
}

void PickleWriter::BeginList() {
  BeforeValue();
  Op(kEmptyList);
  open_.push_back({false, 0});
}

void PickleWriter::End() {
  const Container container = open_.back();
  open_.pop_back();
  if (container.items > 0) Op(container.is_dict ? kSetItems : kAppends);
}

PickleWriter::Memo PickleWriter::Put() {
  const Memo memo = next_memo_++;
  Op(memo < 256 ? kBinPut : kLongBinPut);
  Little(memo, memo < 256 ? 1 : 4);
  return memo;
}

PickleWriter::Memo PickleWriter::Remember() { return Put(); }

void PickleWriter::Recall(Memo memo) {
  BeforeValue();
  Op(memo < 256 ? kBinGet : kLongBinGet);
  Little(memo, memo < 256 ? 1 : 4);
}

void PickleWriter::String(std::string_view text) {
  const auto [it, is_new] = strings_.try_emplace(std::string(text), 0);
  if (!is_new) return Recall(it->second);
  BeforeValue();
  const std::string valid = ValidUtf8(text);
  Op(kBinUnicode);
  Little(valid.size(), 4);
  out_.write(valid.data(), static_cast<std::streamsize>(valid.size()));
  it->second = Put();
}

void PickleWriter::PutInt(int64_t value) {
  if (value >= 0 && value < 0x100) {
    Op(kBinInt1);
    Little(static_cast<uint64_t>(value), 1);
  } else if (value >= 0 && value < 0x10000) {
    Op(kBinInt2);
    Little(static_cast<uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    Op(kBinInt);
    Little(static_cast<uint64_t>(value), 4);
  } else {
    Op(kLong1);
    Little(8, 1);
    Little(static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::Int(int64_t value) {
  BeforeValue();
  PutInt(value);
}

void PickleWriter::Float(double value) {
  BeforeValue();
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  Op(kBinFloat);  // the only big-endian number of the format
  for (int shift = 56; shift >= 0; shift -= 8) out_.put(static_cast<char>(bits >> shift));
}

void PickleWriter::Bool(bool value) {
  BeforeValue();
  Op(value ? kNewTrue : kNewFalse);
}

void PickleWriter::None() {
  BeforeValue();
  Op(kNone);
}

void PickleWriter::IntPair(int64_t first, int64_t second) {
  BeforeValue();
  PutInt(first);
  PutInt(second);
  Op(kTuple2);
}

void PickleWriter::Finish() { Op(kStop); }

}  // namespace gmt::interop
