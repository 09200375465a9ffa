#include "viewer/index/packed_column.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gmt::viewer {

void PackedColumn::Read(uint64_t chunk, Values& values) const {
  if (chunk >= chunks_.size()) return values.fill(0);
  const uint64_t count = std::min(kChunk, size_ - std::min(size_, chunk * kChunk));
  for (uint64_t i = 0; i < count; ++i) values[i] = Value(chunks_[chunk], i);
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
  // 64 values of `width` bits fill `width` words; a last chunk that is not full has as many.
  storage_.words.resize(first + width);
  uint64_t* words = storage_.words.data() + first;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t packed = (pending_[i] - base) >> shift;
    const uint64_t bit = i * width, word = bit / 64, low = bit % 64;
    words[word] |= packed << low;
    if (low + width > 64) words[word + 1] |= packed >> (64 - low);
  }
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
