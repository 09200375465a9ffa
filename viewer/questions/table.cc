#include "viewer/questions/table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "viewer/questions/lifetimes.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

absl::Status Check(const Recording& recording, const TableQuery& query) {
  if (query.limit > kMaxTableRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page of a table has at most ", kMaxTableRows, " rows"));
  }
  if (query.sparkline > kMaxSparkline) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sparkline has at most ", kMaxSparkline, " columns"));
  }
  return CheckScope(recording, query.scope);
}

struct Group {
  uint64_t bytes = 0, blocks = 0;  // differences for kGrowth, modulo 2^64
  double sizes = 0, counted = 0;   // over all blocks, regardless of sign
  uint64_t order = 0;              // sort key of kGrowth and kRate
  uint64_t largest = 0;
  RowId largest_row = analysis::kNoRow;
};

class TableMaker {
 public:
  TableMaker(Recording& recording, const TableQuery& query, RowFilter& filter)
      : recording_(recording),
        query_(query),
        filter_(filter),
        history_(recording.histories.Get(recording, query.scope.lane, query.by, query.scope.filter,
                                         filter)),
        groups_(history_.grouper.count()) {}

  Table Make() {
    CountScope();
    if (query_.sort == TableQuery::kGrowth) CountGrowth();
    if (query_.sort == TableQuery::kRate) CountBirths();
    if (query_.sort == TableQuery::kLifetime) FindLifetimes(present_);
    SortPresent();
    for (uint64_t i = query_.offset; i < present_.size() && page_.size() < query_.limit; ++i) {
      page_.push_back(present_[i]);
    }
    if (query_.sort != TableQuery::kLifetime) FindLifetimes(page_);
    for (const uint32_t group : page_) table_.rows.push_back(RowOf(group));
    if (query_.sparkline > 0) AddSparklines();
    return std::move(table_);
  }

 private:
  void CountScope() {
    uint64_t bytes = 0, blocks = 0;
    const analysis::Rows& rows = recording_.rows();
    ForEachRow(recording_, query_.scope, filter_, [&](RowId row, int sign) {
      const uint32_t index = history_.grouper.Of(row);
      Group& group = groups_[index];
      const uint64_t size = rows.size[row];
      if (group.counted == 0) present_.push_back(index);
      group.bytes += sign > 0 ? size : -size;
      group.blocks += static_cast<uint64_t>(int64_t{sign});
      group.sizes += static_cast<double>(size);
      ++group.counted;
      ++rows_in_scope_;
      bytes += sign > 0 ? size : -size;
      blocks += static_cast<uint64_t>(int64_t{sign});
      if (group.largest_row == analysis::kNoRow || size > group.largest) {
        group.largest = size;
        group.largest_row = row;
      }
      return true;
    });
    table_.total_rows = present_.size();
    table_.total_bytes = static_cast<int64_t>(bytes);
    table_.total_blocks = static_cast<int64_t>(blocks);
  }

  void CountGrowth() {
    Scope scope = query_.scope;
    scope.of = Scope::kGrowth;
    ForEachRow(recording_, scope, filter_, [&](RowId row, int sign) {
      const uint64_t size = recording_.rows().size[row];
      groups_[history_.grouper.Of(row)].order += sign > 0 ? size : -size;
      return true;
    });
  }
  void CountBirths() {
    Scope scope = query_.scope;
    scope.of = Scope::kBorn;
    ForEachRow(recording_, scope, filter_, [&](RowId row, int) {
      ++groups_[history_.grouper.Of(row)].order;
      return true;
    });
  }

  void FindLifetimes(const std::vector<uint32_t>& groups) {
    LifetimeMedians medians(rows_in_scope_, groups);
    ForEachRow(recording_, query_.scope, filter_, [&](RowId row, int) {
      medians.Add(history_.grouper.Of(row), recording_.trace(), row);
      return true;
    });
    lifetimes_ = std::move(medians).Find();
  }
  std::optional<int64_t> LifetimeOf(uint32_t group) const {
    const auto found = lifetimes_.find(group);
    return found == lifetimes_.end() ? std::nullopt : std::optional(found->second);
  }

  // Larger keys come first if the order is descending.
  template <typename KeyOf>
  void SortBy(const KeyOf& key_of) {
    std::sort(present_.begin(), present_.end(), [&](uint32_t a, uint32_t b) {
      const auto left = key_of(a), right = key_of(b);
      if (left != right) return query_.descending ? right < left : left < right;
      return history_.grouper.Less(a, b);
    });
  }
  void SortPresent() {
    switch (query_.sort) {
      case TableQuery::kBytes:
        return SortBy([&](uint32_t g) { return static_cast<int64_t>(groups_[g].bytes); });
      case TableQuery::kBlocks:
        return SortBy([&](uint32_t g) { return static_cast<int64_t>(groups_[g].blocks); });
      case TableQuery::kPeak:
        return SortBy([&](uint32_t g) { return history_.peak_bytes[g]; });
      case TableQuery::kGrowth:
      case TableQuery::kRate:
        return SortBy([&](uint32_t g) { return static_cast<int64_t>(groups_[g].order); });
      case TableQuery::kLifetime:
        return SortBy([&](uint32_t g) { return LifetimeOf(g).value_or(INT64_MAX); });
      case TableQuery::kName:
        return SortByName();
    }
  }
  void SortByName() {
    // The names of sizes, streams and threads are numbers.
    const bool has_text = query_.by == TableQuery::kFunction || query_.by == TableQuery::kFile ||
                          query_.by == TableQuery::kStack || query_.by == TableQuery::kCategory;
    absl::flat_hash_map<uint32_t, std::string> names;
    for (const uint32_t group : present_) {
      if (has_text) names[group] = history_.grouper.NameOf(group, groups_[group].largest_row).name;
    }
    std::sort(present_.begin(), present_.end(), [&](uint32_t a, uint32_t b) {
      if (has_text && names[a] != names[b]) return query_.descending != (names[a] < names[b]);
      return has_text || !query_.descending ? history_.grouper.Less(a, b)
                                            : history_.grouper.Less(b, a);
    });
  }

  uint32_t StackOf(uint32_t group) const {
    return recording_.rows().stack[groups_[group].largest_row];
  }

  TableRow RowOf(uint32_t index) const {
    const Group& group = groups_[index];
    TableRow row;
    row.stack = StackOf(index);
    Grouper::Name name = history_.grouper.NameOf(index, group.largest_row);
    row.id = std::move(name.id);
    row.name = std::move(name.name);
    row.where = std::move(name.where);
    row.bytes = static_cast<int64_t>(group.bytes);
    row.blocks = static_cast<int64_t>(group.blocks);
    row.peak_bytes = history_.peak_bytes[index];
    row.mean_size = group.sizes / group.counted;
    row.median_lifetime_ns = LifetimeOf(index);
    row.sparkline.assign(query_.sparkline, 0);
    return row;
  }

  void AddSparklines() {
    absl::flat_hash_map<uint32_t, size_t> at;
    for (size_t i = 0; i < page_.size(); ++i) at[page_[i]] = i;
    const LaneMemory lane = recording_.lanes[query_.scope.lane];
    recording_.samples.ForEach(recording_.trace(), recording_.held, query_.sparkline,
                               [&](uint32_t column, RowId row) {
                                 if (!recording_.IsIn(lane, row) || !filter_.Matches(row)) return;
                                 const auto found = at.find(history_.grouper.Of(row));
                                 if (found == at.end()) return;
                                 table_.rows[found->second].sparkline[column] +=
                                     static_cast<double>(recording_.rows().size[row]);
                               });
  }

  Recording& recording_;
  const TableQuery& query_;
  RowFilter& filter_;
  GroupHistory& history_;
  std::vector<Group> groups_;
  std::vector<uint32_t> present_, page_;  // groups
  uint64_t rows_in_scope_ = 0;
  absl::flat_hash_map<uint32_t, int64_t> lifetimes_;
  Table table_;
};

}  // namespace

absl::StatusOr<Table> MakeTable(Recording& recording, const TableQuery& query) {
  if (absl::Status status = Check(recording, query); !status.ok()) return status;
  absl::StatusOr<RowFilter> filter = RowFilter::Make(recording, query.scope.filter);
  if (!filter.ok()) return filter.status();
  if (query.by == TableQuery::kBlock) return MakeBlockTable(recording, query, *filter);
  return TableMaker(recording, query, *filter).Make();
}

}  // namespace gmt::viewer
