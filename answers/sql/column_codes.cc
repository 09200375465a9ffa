#include "answers/sql/column_codes.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "answers/sql/tables.h"

namespace gmt::answers::sql {
namespace {

// Numbers values in the order in which they occur first.
class Numbering {
 public:
  // The number of the value; null if there are too many.
  std::optional<uint16_t> Of(const CellValue& value) {
    switch (value.type) {
      case CellValue::kNull:
        return null_ ? null_ : null_ = New(std::monostate());
      case CellValue::kInteger:
        return Known(integers_, value.integer);
      case CellValue::kText:
        return Known(texts_, value.copy);
      case CellValue::kLastingText:
        break;
    }
    // Most texts are the same few places in memory.
    const std::pair<const char*, size_t> place(value.lasting.data(), value.lasting.size());
    if (place == last_place_) return last_number_;
    const auto found = places_.find(place);
    std::optional<uint16_t> number;
    if (found != places_.end()) {
      number = found->second;
    } else {
      number = Known(texts_, std::string(value.lasting));
      if (number) places_.emplace(place, *number);
    }
    last_place_ = place;
    return last_number_ = number;
  }
  std::vector<ColumnCodes::Value> TakeValues() { return std::move(values_); }

 private:
  std::optional<uint16_t> New(ColumnCodes::Value value) {
    if (values_.size() == ColumnCodes::kMaxValues) return std::nullopt;
    values_.push_back(std::move(value));
    return static_cast<uint16_t>(values_.size() - 1);
  }
  template <typename Key>
  std::optional<uint16_t> Known(absl::flat_hash_map<Key, uint16_t>& numbers, const Key& key) {
    if (const auto found = numbers.find(key); found != numbers.end()) return found->second;
    const std::optional<uint16_t> number = New(key);
    if (number) numbers.emplace(key, *number);
    return number;
  }

  std::vector<ColumnCodes::Value> values_;
  std::optional<uint16_t> null_;
  absl::flat_hash_map<int64_t, uint16_t> integers_;
  absl::flat_hash_map<std::string, uint16_t> texts_;
  absl::flat_hash_map<std::pair<const char*, size_t>, uint16_t> places_;
  std::pair<const char*, size_t> last_place_;
  std::optional<uint16_t> last_number_;
};

}  // namespace

std::optional<ColumnCodes> ColumnCodes::Make(Source& source, const Table& table,
                                             const Column& column) {
  const uint64_t rows = table.count(source);
  if (rows > UINT32_MAX) return std::nullopt;
  ColumnCodes made;
  made.codes_.reserve(rows);
  Numbering numbering;
  CellValue value;
  KeptCell cell(&value);
  for (uint64_t row = 0; row < rows; ++row) {
    value.type = CellValue::kNull;
    column.write(source, row, cell);
    const std::optional<uint16_t> number = numbering.Of(value);
    if (!number) return std::nullopt;
    made.codes_.push_back(*number);
  }
  const std::vector<Value> values = numbering.TakeValues();
  std::vector<uint16_t> sorted(values.size());
  std::iota(sorted.begin(), sorted.end(), uint16_t{0});
  std::sort(sorted.begin(), sorted.end(),
            [&values](uint16_t a, uint16_t b) { return values[a] < values[b]; });
  std::vector<uint16_t> rank(values.size());
  for (size_t i = 0; i < sorted.size(); ++i) rank[sorted[i]] = static_cast<uint16_t>(i);
  made.count_ = values.size();
  for (uint16_t& code : made.codes_) code = rank[code];
  return made;
}

void SortRows(const std::vector<SortKey>& keys, std::vector<uint32_t>& rows) {
  if (rows.empty()) return;
  std::vector<uint32_t> sorted(rows.size());
  // A counting sort by each key, from the last to the first.
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const size_t last = key->codes->count() - 1;
    const auto place_of = [&](uint32_t row) {
      const size_t code = (*key->codes)[row];
      return key->is_descending ? last - code : code;
    };
    std::vector<size_t> next(last + 2);
    for (const uint32_t row : rows) ++next[place_of(row) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const uint32_t row : rows) sorted[next[place_of(row)]++] = row;
    rows.swap(sorted);
  }
}

}  // namespace gmt::answers::sql
