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

EventTimeReader::EventTimeReader(const std::string& widths, const std::string& bits)
    : width_(widths.data()),
      end_width_(width_ + widths.size()),
      bits_(bits + std::string(9, '\0')),
      end_bit_(uint64_t{8} * bits.size()) {}

bool EventTimeReader::Next(int64_t* difference) {
  if (width_ == end_width_) return false;
  const auto code = static_cast<uint8_t>(*width_++);
  const int width = code & ~kNegative;
  auto magnitude = static_cast<uint64_t>(width);
  if (width > 1) {
    const int taken = width - 1;
    const char* bytes = bits_.data() + bit_ / 8;
    const auto shift = static_cast<int>(bit_ % 8);
    bit_ += static_cast<uint64_t>(taken);
    if (width > 64 || bit_ > end_bit_) return false;
    std::memcpy(&magnitude, bytes, sizeof magnitude);
    magnitude >>= shift;
    if (taken + shift > 64) magnitude |= uint64_t{static_cast<uint8_t>(bytes[8])} << (64 - shift);
    magnitude = (magnitude & Below(taken)) | uint64_t{1} << taken;
  }
  *difference = static_cast<int64_t>((code & kNegative) != 0 ? -magnitude : magnitude);
  return true;
}

}  // namespace gmt::format
