#include "answers/sql/virtual_table.h"

#include <sqlite3.h>

#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace gmt::answers::sql {
namespace {

constexpr int kFileColumn = 0, kKeyColumn = 1;
// Passed from xBestIndex to xFilter: how rows are found.
constexpr int kByScan = 0, kByKey = 1;

struct Registered {
  const Table& table;
  std::vector<Source>& sources;
};

struct VirtualTable : sqlite3_vtab {
  explicit VirtualTable(const Registered& registered) : sqlite3_vtab(), of(registered) {}
  const Registered& of;
};

struct Cursor : sqlite3_vtab_cursor {
  explicit Cursor(const Registered& registered) : sqlite3_vtab_cursor(), of(registered) {}

  // Goes to the first row of the next source that has one.
  void Settle() {
    while (row >= end && ++source < of.sources.size()) Enter();
  }
  void Enter() {
    Source& entered = of.sources[source];
    const bool by_key = mode == kByKey;
    const auto [first, behind] = by_key ? of.table.find(entered, key)
                                        : std::pair<uint64_t, uint64_t>(0, of.table.count(entered));
    row = first;
    end = behind;
  }

  const Registered& of;
  int mode = kByScan;
  int64_t key = 0;
  size_t source = 0;
  uint64_t row = 0, end = 0;
};

Cursor* CursorOf(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor); }

int Connect(sqlite3* connection, void* registered, int, const char* const*, sqlite3_vtab** made,
            char**) {
  const auto& of = *static_cast<const Registered*>(registered);
  std::string declaration = "CREATE TABLE t(file TEXT";
  for (const Column& column : of.table.columns) {
    absl::StrAppend(&declaration, ", \"", column.name, "\" ", column.type);
  }
  declaration += ")";
  const int result = sqlite3_declare_vtab(connection, declaration.c_str());
  if (result == SQLITE_OK) *made = new VirtualTable(of);
  return result;
}

int Disconnect(sqlite3_vtab* table) {
  delete static_cast<VirtualTable*>(table);
  return SQLITE_OK;
}

int BestIndex(sqlite3_vtab* table, sqlite3_index_info* plan) {
  const Registered& of = static_cast<VirtualTable*>(table)->of;
  uint64_t rows = 0;
  for (Source& source : of.sources) rows += of.table.count(source);
  plan->idxNum = kByScan;
  plan->estimatedRows = static_cast<sqlite3_int64>(rows);
  plan->estimatedCost = static_cast<double>(rows);
  for (int i = 0; i < plan->nConstraint; ++i) {
    const auto& constraint = plan->aConstraint[i];
    const bool is_key = of.table.find != nullptr && constraint.iColumn == kKeyColumn &&
                        constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && constraint.usable != 0;
    if (!is_key) continue;
    plan->idxNum = kByKey;
    plan->aConstraintUsage[i].argvIndex = 1;
    plan->estimatedRows = 1 + static_cast<sqlite3_int64>(of.sources.size());
    plan->estimatedCost = 2.0 * static_cast<double>(of.sources.size());
    return SQLITE_OK;
  }
  return SQLITE_OK;
}

int Open(sqlite3_vtab* table, sqlite3_vtab_cursor** made) {
  *made = new Cursor(static_cast<VirtualTable*>(table)->of);
  return SQLITE_OK;
}

int Close(sqlite3_vtab_cursor* cursor) {
  delete CursorOf(cursor);
  return SQLITE_OK;
}

// The key that `value` is equal to in SQL: 1, 1.0 and '1' are.
std::optional<int64_t> WholeNumber(sqlite3_value* value) {
  const int type = sqlite3_value_numeric_type(value);
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(value);
  if (type != SQLITE_FLOAT) return std::nullopt;
  const double number = sqlite3_value_double(value);
  constexpr double kLimit = 9e18;  // within the range of int64_t
  if (number != std::floor(number) || std::abs(number) > kLimit) return std::nullopt;
  return static_cast<int64_t>(number);
}

int Filter(sqlite3_vtab_cursor* at, int mode, const char*, int count, sqlite3_value** values) {
  Cursor* cursor = CursorOf(at);
  cursor->mode = mode;
  cursor->source = 0;
  cursor->row = cursor->end = 0;
  if (mode == kByKey) {
    const std::optional<int64_t> key = count == 1 ? WholeNumber(values[0]) : std::nullopt;
    if (!key) {  // equal to no key
      cursor->source = cursor->of.sources.size();
      return SQLITE_OK;
    }
    cursor->key = *key;
  }
  if (cursor->of.sources.empty()) return SQLITE_OK;
  cursor->Enter();
  cursor->Settle();
  return SQLITE_OK;
}

int Next(sqlite3_vtab_cursor* at) {
  Cursor* cursor = CursorOf(at);
  ++cursor->row;
  cursor->Settle();
  return SQLITE_OK;
}

int IsAtEnd(sqlite3_vtab_cursor* at) {
  return CursorOf(at)->source >= CursorOf(at)->of.sources.size() ? 1 : 0;
}

int Value(sqlite3_vtab_cursor* at, sqlite3_context* context, int column) {
  Cursor* cursor = CursorOf(at);
  Source& source = cursor->of.sources[cursor->source];
  SqliteCell cell(context);
  if (column == kFileColumn) {
    cell.LastingText(source.name());
  } else {
    cursor->of.table.columns[static_cast<size_t>(column) - 1].write(source, cursor->row, cell);
  }
  return SQLITE_OK;
}

int RowNumber(sqlite3_vtab_cursor* at, sqlite3_int64* number) {
  const Cursor* cursor = CursorOf(at);
  *number = static_cast<sqlite3_int64>((uint64_t{cursor->source} << 40) | cursor->row);
  return SQLITE_OK;
}

// Without xCreate, the tables exist from the start under the names of their modules.
constexpr sqlite3_module MakeModule() {
  sqlite3_module module = {};
  module.xConnect = Connect;
  module.xBestIndex = BestIndex;
  module.xDisconnect = Disconnect;
  module.xOpen = Open;
  module.xClose = Close;
  module.xFilter = Filter;
  module.xNext = Next;
  module.xEof = IsAtEnd;
  module.xColumn = Value;
  module.xRowid = RowNumber;
  return module;
}
constexpr sqlite3_module kModule = MakeModule();

}  // namespace

void SqliteCell::Integer(int64_t value) { sqlite3_result_int64(context_, value); }

void SqliteCell::Text(std::string_view text) {
  if (!text.empty())
    sqlite3_result_text64(context_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void SqliteCell::LastingText(std::string_view text) {
  if (!text.empty())
    sqlite3_result_text64(context_, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

int AddVirtualTable(sqlite3* connection, const Table& table, std::vector<Source>& sources) {
  return sqlite3_create_module_v2(
      connection, table.name, &kModule, new Registered{table, sources},
      [](void* registered) { delete static_cast<Registered*>(registered); });
}

}  // namespace gmt::answers::sql
