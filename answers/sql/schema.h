// answers/sql/schema.h
//
// The tables of recordings described to people.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_SQL_SCHEMA_H_
#define GMT_ANSWERS_SQL_SCHEMA_H_

#include <string>

namespace gmt::answers::sql {

// Describes every table with its columns, for people.
std::string Schema();
// The same for one table or view; empty if there is none of that name.
std::string SchemaOf(const std::string& name);
// A line for each table and view.
std::string TableList();

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_SCHEMA_H_
