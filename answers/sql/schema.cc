#include "answers/sql/schema.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "answers/sql/tables.h"

namespace gmt::answers::sql {
namespace {

std::string Padded(std::string_view name, size_t width) {
  return std::string(name) + std::string(width - std::min(width - 1, name.size()), ' ');
}

std::string SchemaOfTable(const Table& table) {
  std::string text = absl::StrCat(table.name, ": ", table.help, "\n");
  for (const Column& column : table.columns) {
    absl::StrAppend(&text, "  ", Padded(column.name, 15),
                    column.type == std::string_view("TEXT") ? "text     " : "integer  ",
                    column.help, "\n");
  }
  return text;
}

}  // namespace

std::string Schema() {
  std::string text;
  for (const Table& table : Tables()) absl::StrAppend(&text, SchemaOfTable(table), "\n");
  for (const View& view : Views()) absl::StrAppend(&text, view.name, ": ", view.help, "\n");
  text +=
      "\nEvery table begins with a column file, the name of the recording. Functions: "
      "human(bytes), "
      "stack_text(stack),\nstack_text(file, stack), and those of SQLite.\n";
  return text;
}

std::string SchemaOf(const std::string& name) {
  for (const Table& table : Tables()) {
    if (table.name == name) return SchemaOfTable(table);
  }
  for (const View& view : Views()) {
    if (view.name == name) return absl::StrCat(view.name, ": ", view.help, "\n");
  }
  return "";
}

std::string TableList() {
  std::string text;
  for (const Table& table : Tables())
    absl::StrAppend(&text, Padded(table.name, 12), table.help, "\n");
  for (const View& view : Views()) absl::StrAppend(&text, Padded(view.name, 12), view.help, "\n");
  return text;
}

}  // namespace gmt::answers::sql
