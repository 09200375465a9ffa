#include "viewer/index/index_archive.h"

#include <algorithm>

namespace gmt::viewer {

uint64_t IndexWriter::AddData(std::string_view bytes) {
  const uint64_t at = data_bytes_;
  data_.push_back(bytes);
  data_bytes_ += bytes.size();
  return at;
}

void IndexWriter::Column(PackedColumn& column) {
  static_assert(sizeof(PackedColumn::Chunk) % 8 == 0);
  const std::string_view chunks = BytesOf(column.chunks()), words = BytesOf(column.words());
  ColumnPlace place;
  place.size = column.size();
  place.chunks_at = AddData(chunks);
  place.chunks = column.chunks().size();
  place.words_at = AddData(words);
  place.words = column.words().size();
  place.chunks_crc = format::Crc32c(chunks);
  place.words_crc = format::Crc32c(words);
  Value(place);
}

const char* IndexReader::Take(uint64_t bytes) {
  if (!is_whole_ || bytes > outline_.size() - at_) {
    is_whole_ = false;
    return nullptr;
  }
  const char* taken = outline_.data() + at_;
  at_ += bytes;
  return taken;
}

uint64_t IndexReader::Count(uint64_t bytes) {
  uint64_t count = 0;
  Value(count);
  if (is_whole_ && count <= (outline_.size() - at_) / bytes) return count;
  is_whole_ = false;
  return 0;
}

void IndexReader::Column(PackedColumn& column) {
  ColumnPlace place;
  Value(place);
  if (!is_whole_) return;
  const auto lies_in_data = [&](uint64_t at, uint64_t count, uint64_t size) {
    return at % 8 == 0 && at <= data_.size() && count <= (data_.size() - at) / size;
  };
  const uint64_t chunks =
      place.size / PackedColumn::kChunk + (place.size % PackedColumn::kChunk != 0);
  is_whole_ = chunks == place.chunks &&
              lies_in_data(place.chunks_at, place.chunks, sizeof(PackedColumn::Chunk)) &&
              lies_in_data(place.words_at, place.words, sizeof(uint64_t));
  if (!is_whole_) return;
  const auto at = [&](uint64_t offset) { return data_.data() + offset; };
  const std::span all_chunks(reinterpret_cast<const PackedColumn::Chunk*>(at(place.chunks_at)),
                             place.chunks);
  const std::span all_words(reinterpret_cast<const uint64_t*>(at(place.words_at)), place.words);
  if (check_columns_ && (format::Crc32c(BytesOf(all_chunks)) != place.chunks_crc ||
                         format::Crc32c(BytesOf(all_words)) != place.words_crc)) {
    is_whole_ = false;
    return;
  }
  column = PackedColumn(place.size, all_chunks, all_words);
}

bool IsSane(const IndexParts& parts) {
  const size_t lanes = parts.lanes.size();
  const uint64_t events = uint64_t{parts.events} + 1;
  const bool fits = parts.curves.size() >= lanes && parts.reserved_curve.size() == lanes &&
                    parts.spaces.size() == lanes && parts.categories.size() == lanes &&
                    parts.axes.IsSane() && parts.axes.events() == parts.events &&
                    parts.changes.code.size() == events && parts.changes.size.size() == events &&
                    parts.category_count <= UINT8_MAX && parts.streams.size() <= UINT16_MAX + 1 &&
                    parts.threads.size() <= UINT16_MAX + 1 && parts.dtypes.size() <= UINT16_MAX + 1;
  if (!fits) return false;
  for (const Lane& lane : parts.lanes) {
    for (const Series series : lane.series) {
      if (series > Series::kProcessUsed) return false;
    }
  }
  // All columns have one entry per block, so that codes in tiles refer to something.
  const uint64_t rows = parts.blocks.birth.size();
  return rows <= UINT32_MAX && parts.blocks.death.size() == rows &&
         parts.blocks.size.size() == rows && parts.blocks.stack.size() == rows &&
         parts.blocks.stream.size() == rows && parts.blocks.thread.size() == rows &&
         parts.blocks.dtype.size() == rows && parts.blocks.pending.size() == rows &&
         parts.blocks.place.size() == rows && parts.row_category.size() == rows &&
         parts.row_role.size() == rows;
}

}  // namespace gmt::viewer
