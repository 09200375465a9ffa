// format/columns.h
//
// The rule for every column in a recording (proto/gmt.proto, F3): a column may be shorter than the
// rows it describes. The missing rows repeat its last value, or are 0 if the column is empty. Thus
// a column that is constant within a chunk costs one value, and an unused column costs nothing.
//
//   rows      7 7 7 7 7      0 0 0 0 0      1 2 3 3 3
//   column    7              (empty)        1 2 3
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_COLUMNS_H_
#define GMT_FORMAT_COLUMNS_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <cstdint>

namespace gmt::format {

// Drops the values at the end that the rule restores.
template <typename T>
void TrimColumn(google::protobuf::RepeatedField<T>* column) {
  int size = column->size();
  while (size > 1 && column->Get(size - 1) == column->Get(size - 2)) --size;
  if (size == 1 && column->Get(0) == T{}) size = 0;
  column->Truncate(size);
}

// Returns the value of `row`, which may be past the end of the column.
template <typename T>
T ColumnAt(const google::protobuf::RepeatedField<T>& column, int row) {
  if (row < column.size()) return column.Get(row);
  return column.empty() ? T{} : column.Get(column.size() - 1);
}

// Reads a column in the order of its rows.
template <typename T>
class ColumnReader {
 public:
  // The column must outlive the reader.
  explicit ColumnReader(const google::protobuf::RepeatedField<T>& column)
      : next_(column.empty() ? &kZero : column.data()),
        last_(column.empty() ? &kZero : next_ + column.size() - 1) {}

  T Next() { return next_ == last_ ? *last_ : *next_++; }

 private:
  static constexpr T kZero{};

  const T* next_;
  const T* last_;
};

// For Events.present_change, which has a value for each kind of event. Kinds of a later version may
// share one.
inline constexpr size_t kKindsOfPresent = 64;
inline size_t KindOfPresent(int kind) { return static_cast<size_t>(kind) % kKindsOfPresent; }

// Add and subtract with wrap-around, because differences in hostile columns may overflow.
inline int64_t AddWrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t SubtractWrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace gmt::format

#endif  // GMT_FORMAT_COLUMNS_H_
