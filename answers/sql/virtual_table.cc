#include "answers/sql/virtual_table.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::answers::sql {
namespace {

constexpr int kFileColumn = 0, kKeyColumn = 1;

struct Registered {
  const Table& table;
  std::vector<Source>& sources;
};

// How a statement reads a table: chosen by xBestIndex, carried out by xFilter. The values that it
// compares with become known only there.
struct Plan {
  bool by_key = false;  // only rows with that key
  // Otherwise only rows in which these columns have given values.
  std::vector<int> equal;
  struct Order {
    int column;
    bool is_descending;
    bool operator==(const Order&) const = default;
  };
  std::vector<Order> order;

  bool operator==(const Plan&) const = default;
};

struct VirtualTable : sqlite3_vtab {
  explicit VirtualTable(const Registered& registered) : sqlite3_vtab(), of(registered) {}

  const Column& ColumnOf(int number) const {
    return of.table.columns[static_cast<size_t>(number) - 1];
  }
  const ColumnCodes* CodesOf(Source& source, int column) const {
    return source.CodesOf(of.table, ColumnOf(column));
  }
  // The number by which xFilter finds the plan.
  int NumberOf(Plan plan) {
    auto at = std::find(plans.begin(), plans.end(), plan);
    if (at == plans.end()) at = plans.insert(at, std::move(plan));
    return static_cast<int>(at - plans.begin());
  }

  const Registered& of;
  std::vector<Plan> plans;
};

// A value that a column must have, as far as it is known here. Nothing is known about values of a
// type that SQL converts before it compares; SQLite checks each row again anyway.
using Wanted = std::optional<ColumnCodes::Value>;

struct Cursor : sqlite3_vtab_cursor {
  explicit Cursor(const VirtualTable& read) : sqlite3_vtab_cursor(), table(read) {}

  // Goes to the first row of the next source that has one.
  void Settle() {
    while (true) {
      while (row < end && !IsWanted()) ++row;
      if (row < end || ++source_index >= table.of.sources.size()) return;
      Enter();
    }
  }
  void Enter() {
    source = &table.of.sources[source_index];
    row = end = 0;
    sorted.clear();
    filters.clear();
    if (plan.by_key) {
      std::tie(row, end) = table.of.table.find(*source, key);
      return;
    }
    for (size_t i = 0; i < plan.equal.size(); ++i) {
      if (!wanted[i]) continue;
      const ColumnCodes* codes = table.CodesOf(*source, plan.equal[i]);
      if (codes == nullptr) continue;
      const std::optional<uint16_t> code = codes->Find(*wanted[i]);
      if (!code) return;  // in no row
      filters.push_back({codes, *code});
    }
    end = table.of.table.count(*source);
    if (!plan.order.empty()) Sort();
  }
  // The number of the current row in its table.
  uint64_t Place() const { return plan.order.empty() ? row : sorted[row]; }

  const VirtualTable& table;
  Plan plan;
  int64_t key = 0;
  std::vector<Wanted> wanted;  // in the columns plan.equal

  size_t source_index = 0;
  Source* source = nullptr;
  uint64_t row = 0, end = 0;  // indices of `sorted` if the plan has an order

 private:
  struct Filter {
    const ColumnCodes* codes;
    uint16_t code;
  };

  bool IsWanted() const {
    if (!plan.order.empty()) return true;  // `sorted` has no other rows
    return Passes(row);
  }
  bool Passes(uint64_t at) const {
    for (const Filter& filter : filters) {
      if ((*filter.codes)[at] != filter.code) return false;
    }
    return true;
  }
  void Sort() {
    for (uint64_t at = 0; at < end; ++at) {
      if (Passes(at)) sorted.push_back(static_cast<uint32_t>(at));
    }
    std::vector<SortKey> keys;
    for (const Plan::Order& order : plan.order)
      keys.push_back({table.CodesOf(*source, order.column), order.is_descending});
    SortRows(keys, sorted);
    end = sorted.size();
  }

  std::vector<Filter> filters;
  std::vector<uint32_t> sorted;
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

bool IsEquality(sqlite3_index_info* info, int i) {
  const auto& constraint = info->aConstraint[i];
  return constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && constraint.usable != 0 &&
         constraint.iColumn >= kKeyColumn &&
         sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
}

// The order that the statement wants; null if it cannot be delivered.
std::optional<std::vector<Plan::Order>> OrderOf(const VirtualTable& table,
                                                const sqlite3_index_info* info) {
  if (table.of.sources.size() != 1) return std::nullopt;  // their rows would have to be merged
  std::vector<Plan::Order> order;
  for (int i = 0; i < info->nOrderBy; ++i) {
    const auto& by = info->aOrderBy[i];
    if (by.iColumn == kFileColumn) continue;  // equal in all rows
    if (by.iColumn < 0 || table.CodesOf(table.of.sources.front(), by.iColumn) == nullptr)
      return std::nullopt;
    order.push_back({by.iColumn, by.desc != 0});
  }
  return order;
}

int BestIndex(sqlite3_vtab* at, sqlite3_index_info* info) {
  VirtualTable* table = static_cast<VirtualTable*>(at);
  const std::vector<Source>& sources = table->of.sources;
  Plan plan;
  double rows = 0;
  for (Source& source : table->of.sources)
    rows += static_cast<double>(table->of.table.count(source));
  // A row that is skipped costs much less than one that SQLite sees.
  constexpr double kSkip = 0.02;
  double seen = rows;
  for (int i = 0; i < info->nConstraint && table->of.table.find != nullptr; ++i) {
    if (!IsEquality(info, i) || info->aConstraint[i].iColumn != kKeyColumn) continue;
    plan.by_key = true;
    info->aConstraintUsage[i].argvIndex = 1;
    seen = rows = static_cast<double>(sources.size());
    break;
  }
  for (int i = 0; i < info->nConstraint && !plan.by_key; ++i) {
    if (!IsEquality(info, i)) continue;
    const int column = info->aConstraint[i].iColumn;
    const ColumnCodes* codes =
        sources.empty() ? nullptr : table->CodesOf(table->of.sources.front(), column);
    if (codes == nullptr) continue;
    plan.equal.push_back(column);
    info->aConstraintUsage[i].argvIndex = static_cast<int>(plan.equal.size());
    seen /= std::max<double>(1, static_cast<double>(codes->count()));
  }
  if (const auto order = OrderOf(*table, info); order && !plan.by_key) {
    plan.order = *order;
    info->orderByConsumed = 1;
  }
  info->estimatedRows = 1 + static_cast<sqlite3_int64>(seen);
  info->estimatedCost = 1 + rows * kSkip + seen;
  info->idxNum = table->NumberOf(std::move(plan));
  return SQLITE_OK;
}

int Open(sqlite3_vtab* table, sqlite3_vtab_cursor** made) {
  *made = new Cursor(*static_cast<VirtualTable*>(table));
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

// What a column of that type must have to be equal to `value`.
Wanted WantedIn(const Column& column, sqlite3_value* value) {
  if (column.type == std::string_view("INTEGER")) return WholeNumber(value);
  if (sqlite3_value_type(value) != SQLITE_TEXT) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) return std::nullopt;
  return std::string(text, static_cast<size_t>(sqlite3_value_bytes(value)));
}

int Filter(sqlite3_vtab_cursor* at, int number, const char*, int, sqlite3_value** values) {
  Cursor* cursor = CursorOf(at);
  cursor->plan = cursor->table.plans[static_cast<size_t>(number)];
  cursor->wanted.clear();
  cursor->source_index = cursor->table.of.sources.size();  // no rows
  if (cursor->plan.by_key) {
    const std::optional<int64_t> key = WholeNumber(values[0]);
    if (!key) return SQLITE_OK;  // equal to no key
    cursor->key = *key;
  }
  for (size_t i = 0; i < cursor->plan.equal.size(); ++i)
    cursor->wanted.push_back(WantedIn(cursor->table.ColumnOf(cursor->plan.equal[i]), values[i]));
  if (cursor->table.of.sources.empty()) return SQLITE_OK;
  cursor->source_index = 0;
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
  return CursorOf(at)->source_index >= CursorOf(at)->table.of.sources.size() ? 1 : 0;
}

int Value(sqlite3_vtab_cursor* at, sqlite3_context* context, int column) {
  const Cursor* cursor = CursorOf(at);
  Cell cell(context);
  if (column == kFileColumn) {
    cell.LastingText(cursor->source->name());
  } else {
    cursor->table.ColumnOf(column).write(*cursor->source, cursor->Place(), cell);
  }
  return SQLITE_OK;
}

int RowNumber(sqlite3_vtab_cursor* at, sqlite3_int64* number) {
  const Cursor* cursor = CursorOf(at);
  *number = static_cast<sqlite3_int64>((uint64_t{cursor->source_index} << 40) | cursor->Place());
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

int AddVirtualTable(sqlite3* connection, const Table& table, std::vector<Source>& sources) {
  return sqlite3_create_module_v2(
      connection, table.name, &kModule, new Registered{table, sources},
      [](void* registered) { delete static_cast<Registered*>(registered); });
}

}  // namespace gmt::answers::sql
