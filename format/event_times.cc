#include "format/event_times.h"

#include <bit>
#include <cstring>

namespace gmt::format {
namespace {

constexpr int kNegative = 128;

static_assert(std::endian::native == std::endian::little, "bits are stored in little-endian words");

uint64_t Below(int bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

void EventTimeWriter::Add(int64_t difference) {
  const auto wrapped = static_cast<uint64_t>(difference);
  const uint64_t magnitude = difference < 0 ? -wrapped : wrapped;
  const int width = std::bit_width(magnitude);
  widths_->push_back(static_cast<char>(difference < 0 ? width | kNegative : width));
  if (width <= 1) return;
  const int added = width - 1;
  const uint64_t bits = magnitude & Below(added);
  pending_ |= bits << pending_bits_;
  pending_bits_ += added;
  if (pending_bits_ < 64) return;
  bits_->append(reinterpret_cast<const char*>(&pending_), sizeof pending_);
  pending_bits_ -= 64;
  pending_ = bits >> (added - pending_bits_);
}

void EventTimeWriter::Finish() {
  bits_->append(reinterpret_cast<const char*>(&pending_),
                static_cast<size_t>(pending_bits_ + 7) / 8);
}

bool EventTimeReader::Next(int64_t* difference) {
  if (row_ >= widths_.size()) return false;
  const auto code = static_cast<uint8_t>(widths_[row_++]);
  const int width = code & ~kNegative;
  uint64_t magnitude = 0;
  if (width > 1) {
    const int taken = width - 1;
    const size_t byte = bit_ / 8;
    const auto shift = static_cast<int>(bit_ % 8);
    bit_ += static_cast<uint64_t>(taken);
    if (width > 64 || bit_ > uint64_t{8} * bits_.size()) return false;
    uint64_t word = 0;
    if (byte + sizeof word <= bits_.size()) {
      std::memcpy(&word, bits_.data() + byte, sizeof word);
    } else {
      std::memcpy(&word, bits_.data() + byte, bits_.size() - byte);
    }
    magnitude = word >> shift;
    if (taken + shift > 64)
      magnitude |= uint64_t{static_cast<uint8_t>(bits_[byte + sizeof word])} << (64 - shift);
    magnitude = (magnitude & Below(taken)) | uint64_t{1} << taken;
  } else {
    magnitude = static_cast<uint64_t>(width);
  }
  *difference = static_cast<int64_t>((code & kNegative) != 0 ? -magnitude : magnitude);
  return true;
}

}  // namespace gmt::format
