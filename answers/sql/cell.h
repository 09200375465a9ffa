// answers/sql/cell.h
//
// Cell: how a table of SQL returns the value of a column in a row.

#ifndef GMT_ANSWERS_SQL_CELL_H_
#define GMT_ANSWERS_SQL_CELL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_CELL_H_
