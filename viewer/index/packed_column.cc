#include "viewer/index/packed_column.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gmt::viewer {

void PackedColumn::Read(uint64_t index, Values& values) const {
  if (index >= chunks_.size()) return values.fill(0);
  const Chunk chunk = chunks_[index];
  const uint64_t count = std::min(kChunk, size_ - std::min(size_, index * kChunk));
  const uint64_t width = chunk.place & 0xff, shift = chunk.place >> 8 & 0xff;
  const uint64_t first = chunk.place >> 16;
  // Like Value(), except that the parts common to all values are computed once.
  if (width == 0 || width > 64 || shift > 63 || first + width > words_.size()) {
    values.fill(chunk.base);
  } else {
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    const uint64_t* word = words_.data() + first;
    uint64_t low = 0;
    for (uint64_t i = 0; i < kChunk; ++i) {
      uint64_t packed = *word >> low;
      low += width;
      if (low > 64) packed |= word[1] << (64 + width - low);
      if (low >= 64) low -= 64, ++word;
      values[i] = chunk.base + ((packed & mask) << shift);
    }
  }
  std::fill(values.begin() + static_cast<std::ptrdiff_t>(count), values.end(), 0);
}

void PackedColumnBuilder::Pack(uint64_t count) {
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(count);
  const uint64_t base = *std::min_element(pending_.begin(), end);
  uint64_t bits = 0;
  for (uint64_t i = 0; i < count; ++i) bits |= pending_[i] - base;
  if (bits == 0) return storage_.chunks.push_back({base, 0});
  const auto shift = static_cast<uint64_t>(std::countr_zero(bits));
  const auto width = static_cast<uint64_t>(std::bit_width(bits >> shift));
  const uint64_t first = storage_.words.size();
  storage_.chunks.push_back({base, first << 16 | shift << 8 | width});
  // 64 values of `width` bits fill `width` words; a partial last chunk takes as many.
  storage_.words.resize(first + width);
  uint64_t* words = storage_.words.data() + first;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t packed = (pending_[i] - base) >> shift;
    const uint64_t bit = i * width, word = bit / 64, low = bit % 64;
    words[word] |= packed << low;
    if (low + width > 64) words[word + 1] |= packed >> (64 - low);
  }
}

void PackedColumnBuilder::Append(const PackedColumnBuilder& next, uint64_t added) {
  const uint64_t words = storage_.words.size();
  for (PackedColumn::Chunk chunk : next.storage_.chunks) {
    chunk.base += added;
    if (chunk.place != 0) chunk.place += words << 16;
    storage_.chunks.push_back(chunk);
  }
  storage_.words.insert(storage_.words.end(), next.storage_.words.begin(),
                        next.storage_.words.end());
  const uint64_t pending = next.size_ % PackedColumn::kChunk;
  size_ += next.size_ - pending;
  for (uint64_t i = 0; i < pending; ++i) Add(next.pending_[i] + added);
}

void PackedColumnBuilder::Reserve(std::span<const PackedColumnBuilder* const> parts) {
  uint64_t chunks = 1, words = PackedColumn::kChunk;  // for the last chunk, which may be pending
  for (const PackedColumnBuilder* part : parts) {
    chunks += part->storage_.chunks.size();
    words += part->storage_.words.size();
  }
  storage_.chunks.reserve(chunks);
  storage_.words.reserve(words);
}

PackedColumn PackedColumnBuilder::Finish() {
  if (size_ % PackedColumn::kChunk != 0) Pack(size_ % PackedColumn::kChunk);
  storage_.chunks.shrink_to_fit();
  storage_.words.shrink_to_fit();
  PackedColumn column;
  auto storage = std::make_shared<PackedColumn::Storage>(std::move(storage_));
  column.size_ = size_;
  column.chunks_ = storage->chunks;
  column.words_ = storage->words;
  column.storage_ = std::move(storage);
  return column;
}

}  // namespace gmt::viewer
