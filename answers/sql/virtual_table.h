// answers/sql/virtual_table.h
//
// Offers tables of recordings to an SQLite connection, as virtual tables that can only be read.
// Each has the rows of all recordings, and a first column `file`.
//
// Thread safety: one thread at a time for one connection.

#ifndef GMT_ANSWERS_SQL_VIRTUAL_TABLE_H_
#define GMT_ANSWERS_SQL_VIRTUAL_TABLE_H_

#include <vector>

#include "answers/sql/tables.h"

struct sqlite3;

namespace gmt::answers::sql {

// Returns an SQLite result code.
// REQUIRES: `table` and `sources` outlive the connection.
int AddVirtualTable(sqlite3* connection, const Table& table, std::vector<Source>& sources);

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_VIRTUAL_TABLE_H_
