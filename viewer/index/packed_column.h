// viewer/index/packed_column.h
//
// PackedColumn: hundreds of millions of unsigned integers that resemble their neighbours, in few
// bits each, with random access, in memory or in a mapped file. Each chunk of 64 values stores
// their common part once:
//
//   value   1024 1536 1024 4096    base 1024, shift 9 (all differences are multiples of 512),
//   packed     0    1    0    6    width 3 bits: 24 bytes of words for 64 values
//
// Invariants
//   P1  The result of Finish() holds exactly the values that were added.
//   P2  Reading never leaves the given memory, whatever it contains: an invalid chunk reads as its
//       base, a value past the end as 0.
//
// Thread safety: const methods from any thread. Cost: a few nanoseconds per value, plus the cache
// miss.

#ifndef GMT_VIEWER_INDEX_PACKED_COLUMN_H_
#define GMT_VIEWER_INDEX_PACKED_COLUMN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gmt::viewer {

class PackedColumn {
 public:
  static constexpr uint64_t kChunk = 64;
  using Values = std::array<uint64_t, kChunk>;

  struct Chunk {
    uint64_t base = 0;
    uint64_t place = 0;  // first word << 16 | shift << 8 | width
  };

  PackedColumn() = default;
  // Uses memory owned by the caller, which must outlive it.
  PackedColumn(uint64_t size, std::span<const Chunk> chunks, std::span<const uint64_t> words)
      : size_(size), chunks_(chunks), words_(words) {}

  uint64_t operator[](uint64_t index) const {
    const uint64_t chunk = index / kChunk;
    return chunk < chunks_.size() ? Value(chunks_[chunk], index % kChunk) : 0;
  }
  // Reads the values of a chunk; entries past the last value are 0.
  void Read(uint64_t index, Values& values) const;
  // Prefetch the value's chunk, then its word, for a later operator[]. Reading at distant positions
  // costs a cache miss each, and prefetching lets the misses overlap.
  void PrefetchChunk(uint64_t index) const {
    if (index / kChunk < chunks_.size()) __builtin_prefetch(&chunks_[index / kChunk]);
  }
  void PrefetchWord(uint64_t index) const {
    if (index / kChunk >= chunks_.size()) return;
    const uint64_t place = chunks_[index / kChunk].place;
    const uint64_t word = (place >> 16) + index % kChunk * (place & 0xff) / 64;
    if (word < words_.size()) __builtin_prefetch(&words_[word]);
  }
  // Returns the minimum of a chunk; for ascending values the first one.
  uint64_t BaseOf(uint64_t chunk) const { return chunk < chunks_.size() ? chunks_[chunk].base : 0; }

  uint64_t size() const { return size_; }
  uint64_t bytes() const { return chunks_.size_bytes() + words_.size_bytes(); }
  std::span<const Chunk> chunks() const { return chunks_; }
  std::span<const uint64_t> words() const { return words_; }

 private:
  friend class PackedColumnBuilder;
  struct Storage {
    std::vector<Chunk> chunks;
    std::vector<uint64_t> words;
  };

  uint64_t Value(const Chunk& chunk, uint64_t at) const {
    const uint64_t width = chunk.place & 0xff, shift = chunk.place >> 8 & 0xff;
    const uint64_t first = chunk.place >> 16;
    if (width == 0 || width > 64 || shift > 63 || first + width > words_.size()) return chunk.base;
    const uint64_t bit = at * width, word = first + bit / 64, low = bit % 64;
    uint64_t packed = words_[word] >> low;
    if (low + width > 64) packed |= words_[word + 1] << (64 - low);
    if (width < 64) packed &= (uint64_t{1} << width) - 1;
    return chunk.base + (packed << shift);
  }

  uint64_t size_ = 0;
  std::span<const Chunk> chunks_;
  std::span<const uint64_t> words_;
  std::shared_ptr<const Storage> storage_;  // if it owns its memory
};

// Reads values whose positions ascend, a chunk at a time: a nanosecond or two per value.
class PackedColumnReader {
 public:
  // `column` must outlive it.
  explicit PackedColumnReader(const PackedColumn& column) : column_(column) {}

  uint64_t At(uint64_t index) {
    if (const uint64_t chunk = index / PackedColumn::kChunk; chunk != chunk_) {
      column_.Read(chunk_ = chunk, values_);
    }
    return values_[index % PackedColumn::kChunk];
  }

 private:
  const PackedColumn& column_;
  uint64_t chunk_ = UINT64_MAX;
  PackedColumn::Values values_ = {};
};

class PackedColumnBuilder {
 public:
  void Add(uint64_t value) {
    pending_[size_++ % PackedColumn::kChunk] = value;
    if (size_ % PackedColumn::kChunk == 0) Pack(PackedColumn::kChunk);
  }
  // Appends the values of another builder, each plus `added` (modulo 2^64). REQUIRES: size() is a
  // multiple of PackedColumn::kChunk.
  void Append(const PackedColumnBuilder& next, uint64_t added);
  // Allocates memory for all values of `parts`, before they are appended.
  void Reserve(std::span<const PackedColumnBuilder* const> parts);
  uint64_t size() const { return size_; }
  PackedColumn Finish();

 private:
  void Pack(uint64_t count);

  PackedColumn::Storage storage_;
  PackedColumn::Values pending_ = {};
  uint64_t size_ = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_PACKED_COLUMN_H_
