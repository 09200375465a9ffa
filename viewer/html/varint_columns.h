// viewer/html/varint_columns.h
//
// Columns of a standalone file: numbers as LEB128, so that the size limit is spent on what varies.
// gzip does the rest: it exploits the similarity of the steps of a training loop.
// viewer/page/src/data/embedded/varints.ts reads them.
//
// Thread safety: plain data.

#ifndef GMT_VIEWER_HTML_VARINT_COLUMNS_H_
#define GMT_VIEWER_HTML_VARINT_COLUMNS_H_

#include <cstdint>
#include <vector>

namespace gmt::viewer {

inline uint64_t Zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

// The page holds numbers as doubles. No real size or time is larger, but a damaged recording may
// contain larger numbers.
inline constexpr uint64_t kLargestNumber = (uint64_t{1} << 53) - 1;

class VarintColumn {
 public:
  void Add(uint64_t value) {
    if (value > kLargestNumber) value = kLargestNumber;
    while (value >= 0x80) {
      bytes_.push_back(static_cast<uint8_t>(value) | 0x80);
      value >>= 7;
    }
    bytes_.push_back(static_cast<uint8_t>(value));
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// Numbers close to their predecessors, stored as differences.
class VarintDeltas {
 public:
  void Add(uint64_t value) {
    if (value > kLargestNumber / 2) value = kLargestNumber / 2;
    column_.Add(Zigzag(static_cast<int64_t>(value - last_)));
    last_ = value;
  }
  const std::vector<uint8_t>& bytes() const { return column_.bytes(); }

 private:
  VarintColumn column_;
  uint64_t last_ = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_VARINT_COLUMNS_H_
