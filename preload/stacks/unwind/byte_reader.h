// preload/stacks/unwind/byte_reader.h
//
// ByteReader: reads tables that may be damaged. It never leaves the bytes it was given. A read
// beyond them yields 0 and makes ok() false permanently, so that a parser may check once at its
// end.

#ifndef GMT_PRELOAD_STACKS_UNWIND_BYTE_READER_H_
#define GMT_PRELOAD_STACKS_UNWIND_BYTE_READER_H_

#include <stdint.h>
#include <string.h>

namespace gmt::preload {

class ByteReader {
 public:
  ByteReader() = default;
  ByteReader(uint64_t begin, uint64_t end) : at_(begin), end_(end < begin ? begin : end) {}

  bool ok() const { return ok_; }
  bool empty() const { return at_ == end_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return end_ - at_; }

  template <typename T>
  T Fixed() {
    T value{};
    if (Take(sizeof(T))) memcpy(&value, reinterpret_cast<const void*>(at_ - sizeof(T)), sizeof(T));
    return value;
  }

  uint64_t Uleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0;; shift += 7) {
      const auto byte = Fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  int64_t Sleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0;;) {
      const auto byte = Fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }

  void Skip(uint64_t size) { Take(size); }

  // Moves by `distance` from here, at most to the end of the input or back to `begin`.
  void Jump(uint64_t begin, int64_t distance) {
    const uint64_t target = at_ + static_cast<uint64_t>(distance);
    if (target < begin || target > end_) {
      Fail();
    } else {
      at_ = target;
    }
  }

  // Returns a reader of the next `size` bytes, and skips them.
  ByteReader Part(uint64_t size) { return Take(size) ? ByteReader(at_ - size, at_) : ByteReader(); }

  void Fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  bool Take(uint64_t size) {
    if (size > end_ - at_) {
      Fail();
      return false;
    }
    at_ += size;
    return true;
  }

  uint64_t at_ = 0, end_ = 0;
  bool ok_ = true;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_BYTE_READER_H_
