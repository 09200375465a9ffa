// answers/sql/column_codes.h
//
// ColumnCodes: a column of one recording as one small number for each row. The numbers have the
// order of the values in SQL. With them, rows are sorted without SQLite, which
// needs seconds to sort ten million rows by what they are for.
//
//   column `heap`   pytorch   pytorch   driver   null   driver
//   code               2         2        1       0       1
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANSWERS_SQL_COLUMN_CODES_H_
#define GMT_ANSWERS_SQL_COLUMN_CODES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gmt::answers::sql {

class Source;
struct Table;
struct Column;

class ColumnCodes {
 public:
  // Null, a number or text; compared as in SQL.
  using Value = std::variant<std::monostate, int64_t, std::string>;
  static constexpr size_t kMaxValues = 65'536;

  // Null if the column has more different values than that, or more rows than 32 bits can count.
  static std::optional<ColumnCodes> Make(Source& source, const Table& table, const Column& column);

  uint16_t operator[](uint64_t row) const { return codes_[row]; }
  // The number of different values; all codes are less.
  size_t count() const { return count_; }

 private:
  ColumnCodes() = default;

  std::vector<uint16_t> codes_;  // by row
  size_t count_ = 0;
};

struct SortKey {
  const ColumnCodes* codes;
  bool is_descending;
};
// Sorts rows by the first key, those that are equal in it by the second, and so on. Rows that are
// equal in all keys keep their order.
void SortRows(const std::vector<SortKey>& keys, std::vector<uint32_t>& rows);

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_COLUMN_CODES_H_
