// answers/sql/tables.h
//
// Tables: a recording as SQL sees it. A table is a list of columns, each of which writes the value
// of a row; nothing is copied until a query reads it. docs/sql.md describes the tables to users and
// repeats the help texts of Tables().

#ifndef GMT_ANSWERS_SQL_TABLES_H_
#define GMT_ANSWERS_SQL_TABLES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "answers/sql/cell.h"
#include "answers/sql/source.h"

namespace gmt::answers::sql {

struct Column {
  const char* name;
  const char* type;  // INTEGER or TEXT
  const char* help;
  void (*write)(Source& source, uint64_t row, Cell& cell);
};

struct Table {
  const char* name;
  const char* help;
  uint64_t (*count)(Source& source);
  std::vector<Column> columns;
  // Returns the rows [first, second) that have the value `key` in the first column; null if they
  // are found by a scan only.
  std::pair<uint64_t, uint64_t> (*find)(Source& source, int64_t key) = nullptr;
};

const std::vector<Table>& Tables();

// A table that selects rows of another one.
struct View {
  const char* name;
  const char* help;
  const char* condition;  // in SQL, on rows of memory
};
const std::vector<View>& Views();

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_TABLES_H_
