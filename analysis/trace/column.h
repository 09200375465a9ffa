// analysis/trace/column.h
//
// Columns of a Trace (analysis/trace/trace.h): millions of values by index. They grow in chunks, so
// existing values are never moved or duplicated.
//
//   Column<T>          plain values
//   UniformColumn<T>   long runs of one value (heaps, devices): a run costs nothing
//   CodedColumn<T>     few distinct values (streams, threads): two bytes each, nothing in long runs
//   OffsetColumn<...>  values near each other: four bytes each (times, addresses, sizes)
//
// Values that exceed those limits (more than 65,535 distinct streams, a pause of seconds) are
// stored at full size: no value is refused or rounded.
//
// Thread safety: const methods from any thread while no thread writes.

#ifndef GMT_ANALYSIS_TRACE_COLUMN_H_
#define GMT_ANALYSIS_TRACE_COLUMN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {

// Iterates over the values of a column in order; yields them by value.
template <typename ColumnType>
class ColumnIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = typename ColumnType::value_type;
  using difference_type = std::ptrdiff_t;
  using pointer = const value_type*;
  using reference = value_type;

  ColumnIterator(const ColumnType* column, size_t index) : column_(column), index_(index) {}
  value_type operator*() const { return (*column_)[index_]; }
  ColumnIterator& operator++() { return ++index_, *this; }
  ColumnIterator operator++(int) { return {column_, index_++}; }
  bool operator==(const ColumnIterator& other) const { return index_ == other.index_; }

 private:
  const ColumnType* column_;
  size_t index_;
};

// Appends `fill` until there are `size` values.
template <typename ColumnType>
void GrowTo(ColumnType& column, size_t size, typename ColumnType::value_type fill = {}) {
  while (column.size() < size) column.push_back(fill);
}

template <typename T>
class Column {
 public:
  using value_type = T;
  using const_reference = T;
  using const_iterator = ColumnIterator<Column>;
  using iterator = const_iterator;

  const T& operator[](size_t index) const { return chunks_[index / kChunk].data()[index % kChunk]; }
  T& operator[](size_t index) { return chunks_[index / kChunk].data()[index % kChunk]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    if (size_ == room_) AddRoom();
    (*this)[size_++] = value;
  }

 private:
  static constexpr size_t kChunk = size_t{1} << 16;
  static constexpr size_t kSmallest = 16;

  // The first chunk grows on demand, because most traces are small.
  ABSL_ATTRIBUTE_NOINLINE void AddRoom() {
    if (size_ % kChunk == 0) chunks_.emplace_back();
    chunks_.back().resize(std::clamp(2 * size_, kSmallest, kChunk));
    room_ = (chunks_.size() - 1) * kChunk + chunks_.back().size();
  }

  std::vector<std::vector<T>> chunks_;
  size_t size_ = 0, room_ = 0;
};

// Its chunks hold one value until a second one appears in them.
template <typename T>
class UniformColumn {
 public:
  using value_type = T;
  using const_reference = T;
  using const_iterator = ColumnIterator<UniformColumn>;
  using iterator = const_iterator;

  T operator[](size_t index) const {
    const Chunk& chunk = chunks_[index / kChunk];
    return chunk.values.empty() ? chunk.all : chunk.values[index % kChunk];
  }
  size_t size() const { return size_; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    const size_t at = size_++ % kChunk;
    if (at != 0 && chunks_.back().values.empty() && value == chunks_.back().all) return;
    Append(at, value);
  }
  void Set(size_t index, T value) {
    Chunk& chunk = chunks_[index / kChunk];
    if (chunk.values.empty()) {
      if (value == chunk.all) return;
      const bool is_last = &chunk == &chunks_.back();
      Spread(chunk, is_last ? (size_ - 1) % kChunk + 1 : kChunk);
    }
    chunk.values[index % kChunk] = value;
  }

 private:
  static constexpr size_t kChunk = 4096;

  struct Chunk {
    T all;
    std::vector<T> values;  // empty: all of them are `all`
  };

  // Appends a value that does not continue a run.
  ABSL_ATTRIBUTE_NOINLINE void Append(size_t at, T value) {
    if (at == 0) return chunks_.push_back({value, {}});
    if (chunks_.back().values.empty()) Spread(chunks_.back(), at);
    chunks_.back().values.push_back(value);
  }
  void Spread(Chunk& chunk, size_t count) {
    if (chunks_.size() > 1) chunk.values.reserve(kChunk);
    chunk.values.assign(count, chunk.all);
  }

  std::vector<Chunk> chunks_;
  size_t size_ = 0;
};

template <typename T>
class CodedColumn {
 public:
  using value_type = T;
  using const_reference = T;
  using const_iterator = ColumnIterator<CodedColumn>;
  using iterator = const_iterator;

  T operator[](size_t index) const { return is_coded_ ? values_[codes_[index]] : plain_[index]; }
  size_t size() const { return is_coded_ ? codes_.size() : plain_.size(); }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    if (!is_coded_) return plain_.push_back(value);
    if (values_.empty() || values_[last_] != value) last_ = CodeOf(value);
    if (is_coded_) return codes_.push_back(last_);
    plain_.push_back(value);
  }

 private:
  static constexpr size_t kMaxCodes = std::numeric_limits<uint16_t>::max();

  uint16_t CodeOf(T value) {
    const auto [it, is_new] = code_of_.try_emplace(value, static_cast<uint16_t>(values_.size()));
    if (!is_new) return it->second;
    if (values_.size() == kMaxCodes) {
      Decode();
      return 0;
    }
    values_.push_back(value);
    return it->second;
  }
  void Decode() {
    for (size_t i = 0; i < codes_.size(); ++i) plain_.push_back(values_[codes_[i]]);
    is_coded_ = false;
    codes_ = {};
    values_ = {};
    code_of_ = {};
  }

  bool is_coded_ = true;
  uint16_t last_ = 0;
  UniformColumn<uint16_t> codes_;
  std::vector<T> values_;  // by code
  absl::flat_hash_map<T, uint16_t> code_of_;
  Column<T> plain_;
};

// Values of a chunk are stored as the distance from its base, in units of 2^kShift. The base is
// kSlack below the first value, because later ones may be smaller.
template <typename T, int kShift, T kSlack>
class OffsetColumn {
 public:
  using value_type = T;
  using const_reference = T;
  using const_iterator = ColumnIterator<OffsetColumn>;
  using iterator = const_iterator;

  T operator[](size_t index) const {
    const Chunk& chunk = chunks_[index / kChunk];
    const size_t at = index % kChunk;
    return chunk.wide.empty() ? ValueOf(chunk, chunk.offsets[at]) : chunk.wide[at];
  }
  size_t size() const { return size_; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    if (size_++ % kChunk == 0) AddChunk(value);
    Chunk& chunk = chunks_.back();
    if (chunk.wide.empty()) {
      const uint64_t distance = static_cast<uint64_t>(value) - static_cast<uint64_t>(chunk.base);
      const uint64_t offset = distance >> kShift;
      if (value >= chunk.base && offset <= kMaxOffset && offset << kShift == distance)
        return chunk.offsets.push_back(static_cast<uint32_t>(offset));
      Widen(chunk);
    }
    chunk.wide.push_back(value);
  }

 private:
  static constexpr size_t kChunk = 4096;
  static constexpr uint64_t kMaxOffset = std::numeric_limits<uint32_t>::max();

  struct Chunk {
    T base = 0;
    std::vector<uint32_t> offsets;
    std::vector<T> wide;  // used instead of `offsets` if a value does not fit there
  };

  static T ValueOf(const Chunk& chunk, uint32_t offset) {
    return chunk.base + static_cast<T>(uint64_t{offset} << kShift);
  }
  ABSL_ATTRIBUTE_NOINLINE void AddChunk(T value) {
    Chunk& chunk = chunks_.emplace_back();
    constexpr T kMin = std::numeric_limits<T>::min();
    chunk.base = value >= kMin + kSlack ? value - kSlack : kMin;
    if (chunks_.size() > 1) chunk.offsets.reserve(kChunk);
  }
  ABSL_ATTRIBUTE_NOINLINE static void Widen(Chunk& chunk) {
    chunk.wide.reserve(kChunk);
    for (const uint32_t offset : chunk.offsets) chunk.wide.push_back(ValueOf(chunk, offset));
    chunk.offsets = {};
  }

  std::vector<Chunk> chunks_;
  size_t size_ = 0;
};

// Threads may record their times slightly out of order.
using TimeColumn = OffsetColumn<int64_t, 0, int64_t{1} << 29>;
// The device memory of a process is usually within a tebibyte, aligned to 256 bytes or more.
using AddressColumn = OffsetColumn<uint64_t, 8, uint64_t{1} << 39>;
// Sizes below 4 GiB.
using SizeColumn = OffsetColumn<uint64_t, 0, std::numeric_limits<uint32_t>::max()>;

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_COLUMN_H_
