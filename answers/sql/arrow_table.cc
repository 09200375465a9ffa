#include "answers/sql/arrow_table.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace gmt::answers::sql {
namespace {

using interop::ArrowValues;
using interop::TextDictionary;

constexpr uint64_t kRowsInABatch = uint64_t{1} << 16;

// Puts the values of one column into consecutive rows.
class ArrowCell : public Cell {
 public:
  ArrowCell(TextDictionary& texts, ArrowValues& values) : texts_(texts), values_(values) {}

  // Goes on to a row, whose value is null until one is written.
  ArrowCell& At(size_t row) {
    row_ = row;
    return *this;
  }
  void Integer(int64_t value) override {
    values_.values[row_] = value;
    values_.known[row_] = 1;
  }
  void Text(std::string_view text) override {
    if (!text.empty()) Integer(texts_.NumberOf(text));
  }
  void LastingText(std::string_view text) override {
    if (!text.empty()) Integer(texts_.NumberOfLasting(text));
  }

 private:
  TextDictionary& texts_;
  ArrowValues& values_;
  size_t row_ = 0;
};

bool IsText(const Column& column) { return std::string_view(column.type) == "TEXT"; }

void Read(const Column& column, Source& source, uint64_t first, uint64_t rows,
          TextDictionary& texts, ArrowValues& values) {
  values.values.assign(rows, 0);
  values.known.assign(rows, 0);
  ArrowCell cell(texts, values);
  for (uint64_t row = 0; row < rows; ++row) column.write(source, first + row, cell.At(row));
}

// Calls `read` with each source and the beginning and number of rows of each of its batches.
template <typename Reader>
absl::Status ForEachBatch(const Table& table, std::vector<Source>& sources, const Reader& read) {
  for (Source& source : sources) {
    const uint64_t count = table.count(source);
    for (uint64_t first = 0; first < count; first += kRowsInABatch) {
      const absl::Status status = read(source, first, std::min(kRowsInABatch, count - first));
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

std::vector<Column> ColumnsOf(const Table& table) {
  std::vector<Column> columns = {
      {"file", "TEXT", "", [](Source& s, uint64_t, Cell& cell) { cell.LastingText(s.name()); }}};
  columns.insert(columns.end(), table.columns.begin(), table.columns.end());
  if (std::string_view(table.name) == "memory") {
    columns.push_back({"stack_text", "TEXT", "", [](Source& s, uint64_t row, Cell& cell) {
                         cell.LastingText(s.StackLine(s.trace().rows.stack[row]));
                       }});
  }
  return columns;
}

}  // namespace

absl::Status WriteArrow(const Table& table, std::vector<Source>& sources,
                        interop::ArrowStream::Output output) {
  const std::vector<Column> columns = ColumnsOf(table);
  std::vector<ArrowValues> values(columns.size());
  std::deque<TextDictionary> texts(columns.size());
  std::vector<interop::ArrowColumn> described;
  for (size_t i = 0; i < columns.size(); ++i) {
    described.push_back({columns[i].name, IsText(columns[i]) ? &texts[i] : nullptr});
    if (!IsText(columns[i])) continue;
    (void)ForEachBatch(table, sources, [&](Source& source, uint64_t first, uint64_t rows) {
      Read(columns[i], source, first, rows, texts[i], values[i]);
      return absl::OkStatus();
    });
  }
  interop::ArrowStream stream(std::move(output));
  absl::Status status = stream.Begin(table.name, std::move(described));
  if (!status.ok()) return status;
  status = ForEachBatch(table, sources, [&](Source& source, uint64_t first, uint64_t rows) {
    for (size_t i = 0; i < columns.size(); ++i)
      Read(columns[i], source, first, rows, texts[i], values[i]);
    return stream.WriteRows(values);
  });
  if (status.ok()) stream.End();
  return status;
}

}  // namespace gmt::answers::sql
