// answers/sql/tables.h
//
// Tables: a recording as SQL sees it. A table is a list of columns, each of which writes the value
// of a row; nothing is copied until a query reads it. docs/sql.md describes the tables to users and
// repeats the help texts of Tables().
//
// Thread safety: one thread at a time for one source.

#ifndef GMT_ANSWERS_SQL_TABLES_H_
#define GMT_ANSWERS_SQL_TABLES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/recording.h"
#include "answers/sql/column_codes.h"

namespace gmt::answers::sql {

// A value that a cell keeps.
struct CellValue {
  enum Type { kNull, kInteger, kText, kLastingText } type = kNull;
  int64_t integer = 0;
  std::string copy;          // the text, if the type is kText
  std::string_view lasting;  // the text, if the type is kLastingText

  std::string_view text() const { return type == kText ? copy : lasting; }
};

// Receives one value. Null unless one of its methods is called.
class Cell {
 public:
  virtual ~Cell() = default;

  virtual void Integer(int64_t value) = 0;
  // A number without a value is null.
  template <typename Number>
  void Integer(const std::optional<Number>& value) {
    if (value) Integer(static_cast<int64_t>(*value));
  }
  // Null if it is 0, which stands for an unknown stack, thread, line or event.
  void Id(uint32_t id) {
    if (id != 0) Integer(id);
  }
  // Null if empty. The text is copied.
  virtual void Text(std::string_view text) = 0;
  // Null if empty. REQUIRES: the text outlives the query.
  virtual void LastingText(std::string_view text) = 0;
};

// Keeps the value.
class KeptCell : public Cell {
 public:
  explicit KeptCell(CellValue* value) : value_(*value) {}

  void Integer(int64_t value) override {
    value_.type = CellValue::kInteger;
    value_.integer = value;
  }
  void Text(std::string_view text) override {
    if (text.empty()) return;
    value_.type = CellValue::kText;
    value_.copy = text;
  }
  void LastingText(std::string_view text) override {
    if (text.empty()) return;
    value_.type = CellValue::kLastingText;
    value_.lasting = text;
  }

 private:
  CellValue& value_;
};

struct Column;
struct Table;

// A recording and what its tables compute once, when they are first read.
class Source {
 public:
  // `name`: the value of the column `file`. REQUIRES: `recording` outlives the source.
  Source(const Recording& recording, std::string name)
      : recording_(recording), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  const Recording& recording() const { return recording_; }
  const analysis::Trace& trace() const { return recording_.trace(); }
  std::string_view String(uint32_t id) const { return recording_.definitions().string(id); }

  // The line of a stack, as in reports; empty if there is none. It lasts as long as the source.
  const std::string& StackLine(uint32_t stack);

  // The stacks that something in the recording refers to, in ascending order.
  const std::vector<uint32_t>& stacks();
  // The first row of each of these stacks in the table `frames`, and the number of rows at the end.
  const std::vector<uint64_t>& first_frames();

  struct StepUse {
    uint32_t step, device;  // indices of Cycles::cycles and Cycles::devices
  };
  const std::vector<StepUse>& step_uses();
  struct PhaseRow {
    StepUse use;
    uint32_t phase;
  };
  const std::vector<PhaseRow>& phases();
  struct CategoryRow {
    int32_t device;
    int64_t t_ns;
    analysis::CategoryUse use;
  };
  // At the peak of each device.
  const std::vector<CategoryRow>& categories();

  // Null if the column has too many different values. Both belong to Tables().
  const ColumnCodes* CodesOf(const Table& table, const Column& column);

 private:
  const Recording& recording_;
  std::string name_;
  std::vector<std::optional<std::string>> stack_lines_;  // by stack
  std::optional<std::vector<uint32_t>> stacks_;
  std::optional<std::vector<uint64_t>> first_frames_;
  std::optional<std::vector<StepUse>> step_uses_;
  std::optional<std::vector<PhaseRow>> phases_;
  std::optional<std::vector<CategoryRow>> categories_;
  std::map<const Column*, std::optional<ColumnCodes>> codes_;
};

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
