// answers/sql/virtual_table.h
//
// Offers tables of recordings to an SQLite connection, as virtual tables that can only be read.
// Each has the rows of all recordings, and a first column `file`.
//
// Thread safety: one thread at a time for one connection.

#ifndef GMT_ANSWERS_SQL_VIRTUAL_TABLE_H_
#define GMT_ANSWERS_SQL_VIRTUAL_TABLE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "answers/sql/tables.h"

struct sqlite3;
struct sqlite3_context;

namespace gmt::answers::sql {

// The result of a function or of a column.
class SqliteCell : public Cell {
 public:
  explicit SqliteCell(sqlite3_context* context) : context_(context) {}

  void Integer(int64_t value) override;
  void Text(std::string_view text) override;
  void LastingText(std::string_view text) override;

 private:
  sqlite3_context* context_;
};

// Returns an SQLite result code.
// REQUIRES: `table` and `sources` outlive the connection.
int AddVirtualTable(sqlite3* connection, const Table& table, std::vector<Source>& sources);

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_VIRTUAL_TABLE_H_
