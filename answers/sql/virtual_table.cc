#include "answers/sql/virtual_table.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "answers/sql/column_codes.h"

namespace gmt::answers::sql {
namespace {

constexpr int kFileColumn = 0, kKeyColumn = 1;

// A table of a connection.
struct Registered {
  const Table& table;
  std::vector<Source>& sources;
  std::map<const Column*, std::optional<ColumnCodes>> codes = {};  // if there is one source

  // Null if the column has too many different values. REQUIRES: there is one source.
  const ColumnCodes* CodesOf(const Column& column) {
    auto found = codes.find(&column);
    if (found == codes.end())
      found = codes.emplace(&column, ColumnCodes::Make(sources.front(), table, column)).first;
    return found->second ? &*found->second : nullptr;
  }
};

// How a statement reads a table: chosen by xBestIndex, carried out by xFilter. The values that
// columns are compared with become known only there.
struct Plan {
  bool by_key = false;  // only rows with that key
  // Otherwise only rows that may meet these conditions. SQLite checks them all again.
  struct Condition {
    int column;
    int comparison;  // SQLITE_INDEX_CONSTRAINT_...
    bool operator==(const Condition&) const = default;
  };
  std::vector<Condition> conditions;
  struct Order {
    int column;
    bool is_descending;
    bool operator==(const Order&) const = default;
  };
  std::vector<Order> order;

  bool operator==(const Plan&) const = default;
};

struct VirtualTable : sqlite3_vtab {
  explicit VirtualTable(Registered& registered) : sqlite3_vtab(), of(registered) {}

  const Column& ColumnOf(int number) const {
    return of.table.columns[static_cast<size_t>(number) - 1];
  }
  const ColumnCodes* CodesOf(int column) const { return of.CodesOf(ColumnOf(column)); }
  bool IsInteger(int column) const { return ColumnOf(column).type == std::string_view("INTEGER"); }
  // The number by which xFilter finds the plan.
  int NumberOf(Plan plan) {
    auto at = std::find(plans.begin(), plans.end(), plan);
    if (at == plans.end()) at = plans.insert(at, std::move(plan));
    return static_cast<int>(at - plans.begin());
  }

  Registered& of;
  std::vector<Plan> plans;
};

// What a column is compared with. Nothing if SQL would have to convert a value first, or if the
// comparison is with null.
using Operand = std::variant<std::monostate, int64_t, double, std::string>;

template <typename Number>
bool Holds(Number value, int comparison, Number operand) {
  switch (comparison) {
    case SQLITE_INDEX_CONSTRAINT_LT:
      return value < operand;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return value <= operand;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return value > operand;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return value >= operand;
    default:
      return value == operand;
  }
}

// Returns false only if the comparison does not hold.
bool MayHold(const CellValue& value, int comparison, const Operand& operand) {
  if (comparison == SQLITE_INDEX_CONSTRAINT_ISNULL) return value.type == CellValue::kNull;
  if (comparison == SQLITE_INDEX_CONSTRAINT_ISNOTNULL) return value.type != CellValue::kNull;
  if (value.type == CellValue::kNull) return false;
  if (value.type != CellValue::kInteger) {
    const auto* text = std::get_if<std::string>(&operand);
    return text == nullptr || *text == value.text();
  }
  if (const auto* integer = std::get_if<int64_t>(&operand))
    return Holds(value.integer, comparison, *integer);
  const auto* real = std::get_if<double>(&operand);
  if (real == nullptr) return true;
  // The conversion may round the number to one that is equal.
  const auto rounded = static_cast<double>(value.integer);
  return rounded == *real || Holds(rounded, comparison, *real);
}

struct Cursor : sqlite3_vtab_cursor {
  explicit Cursor(const VirtualTable& read) : sqlite3_vtab_cursor(), table(read) {}

  void Begin() {
    source_index = 0;
    source_count = table.of.sources.size();
    if (!IsAtEnd()) Enter();
    Settle();
  }
  void BeginWithoutRows() { source_index = source_count = 0; }
  bool IsAtEnd() const { return source_index == source_count; }
  void Next() {
    ++row;
    if (row >= end || checks_rows) Settle();
  }
  // The number of the current row in its table.
  uint64_t Place() const { return plan.order.empty() ? row : sorted[row]; }

  const VirtualTable& table;
  const Column* const columns = table.of.table.columns.data();
  Plan plan;
  int64_t key = 0;
  std::vector<Operand> operands;  // one for each of plan.conditions

  size_t source_index = 0, source_count = 0;
  Source* source = nullptr;

 private:
  // Goes to the next row that passes, if the current one does not.
  void Settle() {
    while (!IsAtEnd()) {
      while (row < end && !Passes(row)) ++row;
      if (row < end) return;
      if (++source_index; !IsAtEnd()) Enter();
    }
  }
  void Enter() {
    source = &table.of.sources[source_index];
    row = end = 0;
    if (plan.by_key) {
      std::tie(row, end) = table.of.table.find(*source, key);
      return;
    }
    end = table.of.table.count(*source);
    checks_rows = !plan.conditions.empty();
    if (!plan.order.empty()) Sort();
  }
  bool Passes(uint64_t at) {
    if (!checks_rows) return true;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Plan::Condition& condition = plan.conditions[i];
      value.type = CellValue::kNull;
      KeptCell cell(&value);
      columns[condition.column - 1].write(*source, at, cell);
      if (!MayHold(value, condition.comparison, operands[i])) return false;
    }
    return true;
  }
  void Sort() {
    sorted.clear();
    if (!checks_rows) sorted.reserve(end);
    for (uint64_t at = 0; at < end; ++at) {
      if (Passes(at)) sorted.push_back(static_cast<uint32_t>(at));
    }
    std::vector<SortKey> keys;
    for (const Plan::Order& order : plan.order)
      keys.push_back({table.CodesOf(order.column), order.is_descending});
    SortRows(keys, sorted);
    end = sorted.size();
    checks_rows = false;
  }

  uint64_t row = 0, end = 0;     // indices of `sorted` if the plan has an order
  bool checks_rows = false;      // not if only rows that pass are left
  std::vector<uint32_t> sorted;  // numbers of rows
  CellValue value;
};

Cursor* CursorOf(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor); }

int Connect(sqlite3* connection, void* registered, int, const char* const*, sqlite3_vtab** made,
            char**) {
  auto& of = *static_cast<Registered*>(registered);
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

// Whether a condition of the statement can be checked here, on a column of the recording's.
bool CanCheck(const VirtualTable& table, sqlite3_index_info* info, int i) {
  const auto& constraint = info->aConstraint[i];
  if (constraint.usable == 0 || constraint.iColumn < kKeyColumn) return false;
  switch (constraint.op) {
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
      return true;
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
      return table.IsInteger(constraint.iColumn);
    default:
      return false;
  }
}

bool IsKey(const VirtualTable& table, const sqlite3_index_info* info, int i) {
  const auto& constraint = info->aConstraint[i];
  return table.of.table.find != nullptr && constraint.iColumn == kKeyColumn &&
         constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && constraint.usable != 0;
}

// The order that the statement wants; null if it cannot be delivered.
std::optional<std::vector<Plan::Order>> OrderOf(const VirtualTable& table,
                                                const sqlite3_index_info* info) {
  if (table.of.sources.size() != 1) return std::nullopt;  // their rows would have to be merged
  std::vector<Plan::Order> order;
  for (int i = 0; i < info->nOrderBy; ++i) {
    const auto& by = info->aOrderBy[i];
    if (by.iColumn == kFileColumn) continue;  // equal in all rows
    if (by.iColumn < 0 || table.CodesOf(by.iColumn) == nullptr) return std::nullopt;
    order.push_back({by.iColumn, by.desc != 0});
  }
  return order;
}

int BestIndex(sqlite3_vtab* at, sqlite3_index_info* info) {
  VirtualTable* table = static_cast<VirtualTable*>(at);
  double rows = 0;
  for (Source& source : table->of.sources)
    rows += static_cast<double>(table->of.table.count(source));
  Plan plan;
  double seen = rows;
  for (int i = 0; i < info->nConstraint && !plan.by_key; ++i) {
    if (!IsKey(*table, info, i)) continue;
    plan.by_key = true;
    info->aConstraintUsage[i].argvIndex = 1;
    seen = rows = static_cast<double>(table->of.sources.size());
  }
  for (int i = 0; i < info->nConstraint && !plan.by_key; ++i) {
    if (!CanCheck(*table, info, i)) continue;
    plan.conditions.push_back({info->aConstraint[i].iColumn, info->aConstraint[i].op});
    info->aConstraintUsage[i].argvIndex = static_cast<int>(plan.conditions.size());
    constexpr double kShareThatMeets = 0.25;  // a guess: how many rows meet a condition
    seen *= kShareThatMeets;
  }
  if (auto order = OrderOf(*table, info); order && !plan.by_key) {
    plan.order = *std::move(order);
    info->orderByConsumed = 1;
  }
  constexpr double kCheckCost = 0.1;  // to check a row here, relative to a row that SQLite sees
  info->estimatedRows = 1 + static_cast<sqlite3_int64>(seen);
  info->estimatedCost = 1 + rows * kCheckCost + seen;
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

Operand OperandOf(bool is_integer, sqlite3_value* value) {
  const int type = is_integer ? sqlite3_value_numeric_type(value) : sqlite3_value_type(value);
  if (is_integer && type == SQLITE_INTEGER) return sqlite3_value_int64(value);
  if (is_integer && type == SQLITE_FLOAT) return sqlite3_value_double(value);
  if (is_integer || type != SQLITE_TEXT) return std::monostate();
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) return std::monostate();
  return std::string(text, static_cast<size_t>(sqlite3_value_bytes(value)));
}

int Filter(sqlite3_vtab_cursor* at, int number, const char*, int, sqlite3_value** values) {
  Cursor* cursor = CursorOf(at);
  cursor->plan = cursor->table.plans[static_cast<size_t>(number)];
  cursor->operands.clear();
  cursor->BeginWithoutRows();
  if (cursor->plan.by_key) {
    const std::optional<int64_t> key = WholeNumber(values[0]);
    if (!key) return SQLITE_OK;  // equal to no key
    cursor->key = *key;
  }
  for (size_t i = 0; i < cursor->plan.conditions.size(); ++i) {
    const bool is_integer = cursor->table.IsInteger(cursor->plan.conditions[i].column);
    cursor->operands.push_back(OperandOf(is_integer, values[i]));
  }
  cursor->Begin();
  return SQLITE_OK;
}

int Next(sqlite3_vtab_cursor* at) {
  CursorOf(at)->Next();
  return SQLITE_OK;
}

int IsAtEnd(sqlite3_vtab_cursor* at) { return CursorOf(at)->IsAtEnd() ? 1 : 0; }

int Value(sqlite3_vtab_cursor* at, sqlite3_context* context, int column) {
  const Cursor* cursor = CursorOf(at);
  SqliteCell cell(context);
  if (column == kFileColumn) {
    cell.LastingText(cursor->source->name());
  } else {
    cursor->columns[column - 1].write(*cursor->source, cursor->Place(), cell);
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
