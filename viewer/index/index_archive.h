// viewer/index/index_archive.h
//
// IndexWriter and IndexReader: serialize the parts of an index, in the order in which their Visit
// names them. Columns, which are large, are stored in a separate part in their in-memory layout at
// multiples of eight, and are not copied when read. Everything else is in the outline, which refers
// to columns by their places:
//
//   outline   value | count, items | size, places and checksums of a column | ...
//   data      chunks of the first column | its words | chunks of the second | ...
//
// The reader validates everything: what it returns lies within its input, and IsSane() checks the
// conditions that the rest of the index relies on.
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_INDEX_INDEX_ARCHIVE_H_
#define GMT_VIEWER_INDEX_INDEX_ARCHIVE_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "format/crc32c.h"
#include "viewer/index/index_parts.h"

namespace gmt::viewer {

// A column's location: byte offsets from the beginning of the data.
struct ColumnPlace {
  uint64_t size = 0;
  uint64_t chunks_at = 0, chunks = 0;
  uint64_t words_at = 0, words = 0;
  uint32_t chunks_crc = 0, words_crc = 0;
};

inline std::string_view BytesOf(const auto& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(items[0])};
}

// Visits the members of a lane, which does not depend on archives itself.
template <typename Archive>
void VisitLane(Archive& archive, Lane& lane) {
  uint64_t capacity = lane.capacity_bytes.value_or(0);
  uint8_t has_capacity = lane.capacity_bytes.has_value(), has_segments = lane.has_segments;
  archive.Value(lane.device);
  archive.Value(lane.heap);
  archive.Text(lane.heap_name);
  archive.Text(lane.label);
  archive.Value(lane.blocks);
  archive.Value(lane.peak_bytes);
  archive.Value(lane.end_bytes);
  archive.Value(lane.peak_event);
  archive.Value(has_capacity);
  archive.Value(capacity);
  archive.Value(has_segments);
  archive.Items(lane.series);
  if (has_capacity != 0) lane.capacity_bytes = capacity;
  lane.has_segments = has_segments != 0;
}

template <typename Archive, typename T>
void VisitAny(Archive& archive, T& item) {
  if constexpr (std::is_same_v<T, std::string>) {
    archive.Text(item);
  } else if constexpr (std::is_same_v<T, Lane>) {
    VisitLane(archive, item);
  } else if constexpr (std::is_same_v<T, PackedColumn>) {
    archive.Column(item);
  } else {
    item.Visit(archive);
  }
}

class IndexWriter {
 public:
  template <typename T>
  void Value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    outline_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(std::string& text) {
    uint64_t count = text.size();
    Value(count);
    outline_ += text;
  }
  template <typename T>
  void Items(std::vector<T>& items) {
    static_assert(std::is_trivially_copyable_v<T>);
    uint64_t count = items.size();
    Value(count);
    outline_ += BytesOf(items);
  }
  template <typename T>
  void Item(T& item) {
    VisitAny(*this, item);
  }
  template <typename T>
  void Each(std::vector<T>& items) {
    uint64_t count = items.size();
    Value(count);
    for (T& item : items) VisitAny(*this, item);
  }
  void Columns(std::vector<PackedColumn>& columns) { Each(columns); }
  void Column(PackedColumn& column);

  const std::string& outline() const { return outline_; }
  // The data in pieces; each has a size that is a multiple of eight.
  const std::vector<std::string_view>& data() const { return data_; }
  uint64_t data_bytes() const { return data_bytes_; }

 private:
  uint64_t AddData(std::string_view bytes);

  std::string outline_;
  std::vector<std::string_view> data_;
  uint64_t data_bytes_ = 0;
};

class IndexReader {
 public:
  // `data` must outlive what is read. REQUIRES: it begins at a multiple of eight.
  IndexReader(std::string_view outline, std::string_view data, bool check_columns)
      : outline_(outline), data_(data), check_columns_(check_columns) {}

  template <typename T>
  void Value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (const char* bytes = Take(sizeof value)) std::memcpy(&value, bytes, sizeof value);
  }
  void Text(std::string& text) {
    const uint64_t count = Count(1);
    if (const char* bytes = Take(count)) text.assign(bytes, count);
  }
  template <typename T>
  void Items(std::vector<T>& items) {
    static_assert(std::is_trivially_copyable_v<T>);
    const uint64_t count = Count(sizeof(T));
    if (const char* bytes = Take(count * sizeof(T)); bytes != nullptr && count > 0) {
      items.resize(count);
      std::memcpy(items.data(), bytes, count * sizeof(T));
    }
  }
  template <typename T>
  void Item(T& item) {
    VisitAny(*this, item);
  }
  template <typename T>
  void Each(std::vector<T>& items) {
    // Every item has at least a count or a column of its own.
    const uint64_t count = Count(sizeof(uint64_t));
    items.resize(is_whole_ ? count : 0);
    for (T& item : items) VisitAny(*this, item);
  }
  void Columns(std::vector<PackedColumn>& columns) { Each(columns); }
  void Column(PackedColumn& column);

  // Returns whether the outline was complete and fully consumed, and every column lies in the data.
  bool is_whole() const { return is_whole_ && at_ == outline_.size(); }

 private:
  const char* Take(uint64_t bytes);
  // Returns how many items of at least `bytes` each follow; 0 if there is no room for them.
  uint64_t Count(uint64_t bytes);

  const std::string_view outline_, data_;
  const bool check_columns_;
  uint64_t at_ = 0;
  bool is_whole_ = true;
};

// Returns whether what was read is a consistent index.
bool IsSane(const IndexParts& parts);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_ARCHIVE_H_
