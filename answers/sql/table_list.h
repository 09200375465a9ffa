// answers/sql/table_list.h
//
// The definitions of tables that have files of their own, for Tables().

#ifndef GMT_ANSWERS_SQL_TABLE_LIST_H_
#define GMT_ANSWERS_SQL_TABLE_LIST_H_

#include <cstdint>

#include "answers/sql/tables.h"

namespace gmt::answers::sql {

// memory_tables.cc
Table MemoryTable();
Table EventsTable();
Table WaitsTable();
Table RolesTable();

// stack_tables.cc
Table StacksTable();
Table FramesTable();

// step_tables.cc
Table StepsTable();
Table PhasesTable();
Table CategoriesTable();

// Writes the number of a GPU; null for host memory.
inline void WriteDevice(int32_t device, Cell& cell) {
  if (device != analysis::kHostDevice) cell.Integer(device);
}

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_TABLE_LIST_H_
