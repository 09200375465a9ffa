// analysis/trace/column.h
//
// Columns of a Trace (analysis/trace/trace.h): millions of values by index. They grow in chunks, so
// existing values are never moved or duplicated.
//
//   Column<T>          plain values
//   UniformColumn<T>   long runs of one value (heaps, devices): a run costs nothing
//   CodedColumn<T>     few distinct values (streams, threads): two bytes each, nothing in long runs
//   OffsetColumn<...>  values near each other: four bytes each (times, addresses, sizes), or two
//                      (births, numbers of stacks)
//
// Values that exceed those limits (more than 65,535 distinct streams, a pause of seconds) are
// stored at full size: no value is refused or rounded.
//
// Thread safety: const methods from any thread while no thread writes.

#ifndef GMT_ANALYSIS_TRACE_COLUMN_H_
#define GMT_ANALYSIS_TRACE_COLUMN_H_

#include <algorithm>
#include <bit>
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

// The size of a chunk of at most `most` values that has one at `index` and room for as many more.
inline size_t RoomOfFirstChunk(size_t index, size_t most) {
  constexpr size_t kSmallest = 16;
  return std::clamp(2 * index, kSmallest, most);
}

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

  // The first chunk grows on demand, because most traces are small.
  ABSL_ATTRIBUTE_NOINLINE void AddRoom() {
    if (size_ % kChunk == 0) chunks_.emplace_back();
    chunks_.back().resize(RoomOfFirstChunk(size_, kChunk));
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
  // Returns the end of a run of equal values that begins at `index`, as far as it is known without
  // comparing them.
  size_t EndOfRun(size_t index) const {
    if (!chunks_[index / kChunk].values.empty()) return index + 1;
    return std::min(size_, (index / kChunk + 1) * kChunk);
  }

  void push_back(T value) {
    const size_t at = size_ % kChunk;
    if (at == 0 || !chunks_.back().values.empty() || value != chunks_.back().all)
      return Append(value);
    ++size_;
  }
  void Set(size_t index, T value) {
    Chunk& chunk = chunks_[index / kChunk];
    if (chunk.values.empty()) {
      if (value == chunk.all) return;
      const bool is_last = &chunk == &chunks_.back();
      chunk.values.assign(is_last ? RoomFor(size_ - 1) : kChunk, chunk.all);
    }
    chunk.values[index % kChunk] = value;
  }

 private:
  static constexpr size_t kChunk = 4096;

  struct Chunk {
    T all;
    // Empty: all of them are `all`. The last chunk has room for more.
    std::vector<T> values;
  };

  // Appends a value that does not continue a run.
  ABSL_ATTRIBUTE_NOINLINE void Append(T value) {
    const size_t at = size_++ % kChunk;
    if (at == 0) return chunks_.push_back({value, {}});
    Chunk& chunk = chunks_.back();
    if (at >= chunk.values.size()) chunk.values.resize(RoomFor(at), chunk.all);
    chunk.values[at] = value;
  }
  // The size of the last chunk's values if there is one at the index. The first chunk grows on
  // demand, because most traces are small.
  size_t RoomFor(size_t index) const {
    return chunks_.size() > 1 ? kChunk : RoomOfFirstChunk(index, kChunk);
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
  // As that of UniformColumn.
  size_t EndOfRun(size_t index) const { return is_coded_ ? codes_.EndOfRun(index) : index + 1; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    if (is_coded_ && value != last_value_) Recode(value);
    if (is_coded_) return codes_.push_back(last_);
    plain_.push_back(value);
  }

 private:
  static constexpr size_t kMaxCodes = std::numeric_limits<uint16_t>::max();

  ABSL_ATTRIBUTE_NOINLINE void Recode(T value) {
    const auto [it, is_new] = code_of_.try_emplace(value, static_cast<uint16_t>(values_.size()));
    if (is_new && values_.size() == kMaxCodes) return Decode();
    if (is_new) values_.push_back(value);
    last_ = it->second;
    last_value_ = value;
  }
  void Decode() {
    for (size_t i = 0; i < codes_.size(); ++i) plain_.push_back(values_[codes_[i]]);
    is_coded_ = false;
    codes_ = UniformColumn<uint16_t>();
    values_ = std::vector<T>();
    code_of_ = absl::flat_hash_map<T, uint16_t>();
  }

  bool is_coded_ = true;
  uint16_t last_ = 0;  // the code of the last value
  T last_value_ = T();
  UniformColumn<uint16_t> codes_;
  std::vector<T> values_ = {T()};  // by code
  absl::flat_hash_map<T, uint16_t> code_of_ = {{T(), 0}};
  Column<T> plain_;
};

// Values of a chunk are stored as distances from its base: an Offset each, in units of 2^kShift.
// The base is kSlack below the first value, because later ones may be smaller.
template <typename T, typename Offset, int kShift, T kSlack>
class OffsetColumn {
 public:
  using value_type = T;
  using const_reference = T;
  using const_iterator = ColumnIterator<OffsetColumn>;
  using iterator = const_iterator;

  // Inlined, because walks over all rows consist of little else.
  ABSL_ATTRIBUTE_ALWAYS_INLINE T operator[](size_t index) const {
    const Chunk& chunk = chunks_[index / kChunk];
    const size_t at = index % kChunk;
    if (chunk.is_wide) [[unlikely]]
      return chunk.wide[at];
    return ValueOf(chunk, chunk.offsets[at]);
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    if (size_ == room_) AddRoom(value);
    Put(chunks_.back(), size_++ % kChunk, value);
  }
  void Set(size_t index, T value) { Put(chunks_[index / kChunk], index % kChunk, value); }

 private:
  static constexpr size_t kChunk = 4096;
  static constexpr uint64_t kMaxOffset = std::numeric_limits<Offset>::max();

  struct Chunk {
    T base = 0;
    bool is_wide = false;  // a value does not fit in `offsets`; all of them are in `wide`
    std::vector<Offset> offsets;
    std::vector<T> wide;
  };

  static T ValueOf(const Chunk& chunk, Offset offset) {
    return static_cast<T>(static_cast<uint64_t>(chunk.base) + (uint64_t{offset} << kShift));
  }
  static void Put(Chunk& chunk, size_t at, T value) {
    const uint64_t distance = static_cast<uint64_t>(value) - static_cast<uint64_t>(chunk.base);
    // Bits that are lost in an offset become its highest ones.
    const uint64_t offset = std::rotr(distance, kShift);
    if (offset > kMaxOffset || chunk.is_wide) [[unlikely]]
      return PutWide(chunk, at, value);
    chunk.offsets[at] = static_cast<Offset>(offset);
  }
  ABSL_ATTRIBUTE_NOINLINE static void PutWide(Chunk& chunk, size_t at, T value) {
    if (!chunk.is_wide) {
      chunk.is_wide = true;
      chunk.wide.reserve(chunk.offsets.size());
      for (const Offset offset : chunk.offsets) chunk.wide.push_back(ValueOf(chunk, offset));
      chunk.offsets = std::vector<Offset>();
    }
    chunk.wide[at] = value;
  }
  // The first chunk grows on demand, because most traces are small.
  ABSL_ATTRIBUTE_NOINLINE void AddRoom(T value) {
    if (size_ % kChunk == 0) {
      constexpr T kMin = std::numeric_limits<T>::min();
      chunks_.emplace_back().base = value >= kMin + kSlack ? value - kSlack : kMin;
    }
    Chunk& chunk = chunks_.back();
    const size_t room = chunks_.size() > 1 ? kChunk : RoomOfFirstChunk(size_, kChunk);
    if (chunk.is_wide) {
      chunk.wide.resize(room);
    } else {
      chunk.offsets.resize(room);
    }
    room_ = (chunks_.size() - 1) * kChunk + room;
  }

  std::vector<Chunk> chunks_;
  size_t size_ = 0, room_ = 0;
};

// Threads may record their times slightly out of order.
using TimeColumn = OffsetColumn<int64_t, uint32_t, 0, int64_t{1} << 29>;
// The device memory of a process is usually within a tebibyte, aligned to 256 bytes or more.
using AddressColumn = OffsetColumn<uint64_t, uint32_t, 8, uint64_t{1} << 39>;
// Sizes below 4 GiB.
using SizeColumn = OffsetColumn<uint64_t, uint32_t, 0, std::numeric_limits<uint32_t>::max()>;
// Numbers that increase slowly.
using AscendingColumn = OffsetColumn<uint32_t, uint16_t, 0, 0>;
// Numbers below 65,536.
using SmallColumn = OffsetColumn<uint32_t, uint16_t, 0, std::numeric_limits<uint16_t>::max()>;

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_COLUMN_H_
