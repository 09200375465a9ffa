// analysis/trace/column.h
//
// Columns of a Trace (analysis/trace/trace.h): millions of values by index. They grow in chunks, so
// existing values are never moved or duplicated.
//
//   Column<T>       plain values
//   CodedColumn<T>  few distinct values (streams, threads, devices): two bytes each
//   TimeColumn      mostly increasing times: four bytes each
//
// Values that exceed those limits (more than 65,535 distinct streams, a pause of seconds) are
// stored at full size: no value is refused or rounded.
//
// Thread safety: const methods from any thread while no thread writes.

#ifndef GMT_ANALYSIS_TRACE_COLUMN_H_
#define GMT_ANALYSIS_TRACE_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

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

template <typename T>
class Column {
 public:
  using value_type = T;
  using const_reference = T;
  using const_iterator = ColumnIterator<Column>;
  using iterator = const_iterator;

  const T& operator[](size_t index) const { return chunks_[index / kChunk].data()[index % kChunk]; }
  T& operator[](size_t index) { return chunks_[index / kChunk].data()[index % kChunk]; }
  size_t size() const {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + chunks_.back().size();
  }
  bool empty() const { return chunks_.empty(); }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  void push_back(T value) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) AddChunk();
    chunks_.back().push_back(value);
  }
  // Appends `fill` until there are `size` values.
  void GrowTo(size_t size, T fill = T()) {
    while (this->size() < size) push_back(fill);
  }

 private:
  static constexpr size_t kChunk = size_t{1} << 16;

  // The first chunk grows on demand, because most traces are small.
  void AddChunk() {
    chunks_.emplace_back();
    if (chunks_.size() > 1) chunks_.back().reserve(kChunk);
  }

  std::vector<std::vector<T>> chunks_;
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
  Column<uint16_t> codes_;
  std::vector<T> values_;  // by code
  absl::flat_hash_map<T, uint16_t> code_of_;
  Column<T> plain_;
};

class TimeColumn {
 public:
  int64_t operator[](size_t index) const {
    const Chunk& chunk = chunks_[index / kChunk];
    const size_t at = index % kChunk;
    return chunk.wide.empty() ? chunk.base + static_cast<int64_t>(chunk.offsets[at])
                              : chunk.wide[at];
  }
  size_t size() const {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + chunks_.back().size();
  }

  void push_back(int64_t t_ns) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) AddChunk(t_ns);
    Chunk& chunk = chunks_.back();
    const bool fits = chunk.wide.empty() && t_ns >= chunk.base && Offset(chunk, t_ns) <= kMaxOffset;
    if (fits) return chunk.offsets.push_back(static_cast<uint32_t>(Offset(chunk, t_ns)));
    if (chunk.wide.empty()) Widen(chunk);
    chunk.wide.push_back(t_ns);
  }

 private:
  static constexpr size_t kChunk = 4096;
  static constexpr uint64_t kMaxOffset = std::numeric_limits<uint32_t>::max();
  // Threads may record their times slightly out of order.
  static constexpr int64_t kSlackNs = 1 << 29;

  struct Chunk {
    int64_t base = 0;
    std::vector<uint32_t> offsets;
    std::vector<int64_t> wide;  // used instead of `offsets` if a value does not fit there

    size_t size() const { return wide.empty() ? offsets.size() : wide.size(); }
  };

  static uint64_t Offset(const Chunk& chunk, int64_t t_ns) {
    return static_cast<uint64_t>(t_ns) - static_cast<uint64_t>(chunk.base);
  }
  void AddChunk(int64_t t_ns) {
    Chunk& chunk = chunks_.emplace_back();
    const bool has_room = t_ns >= std::numeric_limits<int64_t>::min() + kSlackNs;
    chunk.base = has_room ? t_ns - kSlackNs : t_ns;
    if (chunks_.size() > 1) chunk.offsets.reserve(kChunk);
  }
  static void Widen(Chunk& chunk) {
    chunk.wide.reserve(kChunk);
    for (uint32_t offset : chunk.offsets) {
      chunk.wide.push_back(chunk.base + static_cast<int64_t>(offset));
    }
    chunk.offsets = {};
  }

  std::vector<Chunk> chunks_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_COLUMN_H_
