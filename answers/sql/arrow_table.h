// answers/sql/arrow_table.h
//
// Writes a table of recordings as a stream of Arrow (interop/arrow/arrow_stream.h), with the
// columns and rows that SQL sees. The table `memory` has one more column, `stack_text`.
//
// Thread safety: one thread at a time for the same sources. Memory: the different texts of the
// table, and a batch of rows.

#ifndef GMT_ANSWERS_SQL_ARROW_TABLE_H_
#define GMT_ANSWERS_SQL_ARROW_TABLE_H_

#include <vector>

#include "absl/status/status.h"
#include "answers/sql/tables.h"
#include "interop/arrow/arrow_stream.h"

namespace gmt::answers::sql {

// If it fails, the output is incomplete.
absl::Status WriteArrow(const Table& table, std::vector<Source>& sources,
                        interop::ArrowStream::Output output);

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_ARROW_TABLE_H_
