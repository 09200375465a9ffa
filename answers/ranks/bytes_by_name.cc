#include "answers/ranks/bytes_by_name.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/median.h"

namespace gmt::answers {

Spread SpreadOf(std::vector<uint64_t> values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Spread spread{*least, 0, *most};
  spread.median = analysis::LowerMedian(std::move(values));
  return spread;
}

void BytesByName::AddRow(const std::map<std::string, uint64_t>& bytes) {
  std::vector<IdBytes>& row = rows_.emplace_back();
  row.reserve(bytes.size());
  for (const auto& [name, sum] : bytes) {
    auto found = ids_.find(name);
    if (found == ids_.end()) {
      const auto id = static_cast<uint32_t>(names_.size());
      found = ids_.emplace(names_.emplace_back(name), id).first;
    }
    row.emplace_back(found->second, sum);
  }
}

void BytesByName::FindMedians() {
  std::vector<std::vector<uint64_t>> values(names_.size());
  for (const std::vector<IdBytes>& row : rows_) {
    for (const auto& [id, bytes] : row) values[id].push_back(bytes);
  }
  medians_.assign(names_.size(), 0);
  for (uint32_t id = 0; id < values.size(); ++id) {
    // If at least half of the ranks do not have the name, its median is 0.
    if (2 * values[id].size() <= rows_.size() - rows_.size() % 2) continue;
    values[id].resize(rows_.size());
    medians_[id] = analysis::LowerMedian(std::move(values[id]));
    if (medians_[id] > 0) common_.push_back(id);
  }
  std::sort(common_.begin(), common_.end(),
            [&](uint32_t a, uint32_t b) { return names_[a] < names_[b]; });
}

std::vector<BytesByName::Entry> BytesByName::EntriesOf(size_t row) const {
  std::vector<Entry> entries;
  auto mine = rows_[row].begin();
  const auto end = rows_[row].end();
  const auto take = [&] {
    entries.push_back({&names_[mine->first], mine->second, medians_[mine->first]});
    ++mine;
  };
  for (const uint32_t id : common_) {
    while (mine != end && names_[mine->first] < names_[id]) take();
    if (mine != end && mine->first == id) {
      take();
    } else {
      entries.push_back({&names_[id], 0, medians_[id]});
    }
  }
  while (mine != end) take();
  return entries;
}

std::map<std::string, Spread> BytesByName::Spreads() const {
  std::vector<Spread> spreads(names_.size(), {std::numeric_limits<uint64_t>::max(), 0, 0});
  std::vector<size_t> ranks(names_.size(), 0);
  for (const std::vector<IdBytes>& row : rows_) {
    for (const auto& [id, bytes] : row) {
      spreads[id].least = std::min(spreads[id].least, bytes);
      spreads[id].most = std::max(spreads[id].most, bytes);
      ++ranks[id];
    }
  }
  std::map<std::string, Spread> by_name;
  for (size_t id = 0; id < names_.size(); ++id) {
    if (ranks[id] < rows_.size()) spreads[id].least = 0;
    spreads[id].median = medians_[id];
    by_name[names_[id]] = spreads[id];
  }
  return by_name;
}

}  // namespace gmt::answers
