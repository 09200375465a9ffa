#include "viewer/questions/range_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analysis/report/report.h"
#include "viewer/index/names.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RangeTotals;
using analysis::RowId;

constexpr double kNsPerSecond = 1e9;

// What a kind of blocks, or a row of the table, has in the range.
struct Amounts {
  uint64_t bytes = 0;  // at the peak
  double byte_ns = 0;
  uint64_t allocations = 0;
  uint64_t growth = 0;  // modulo 2^64
  bool is_there = false;

  void Add(const Amounts& other) {
    bytes += other.bytes;
    byte_ns += other.byte_ns;
    allocations += other.allocations;
    growth += other.growth;
    is_there = is_there || other.is_there;
  }
  RangeAmounts Result() const {
    return {bytes, byte_ns / kNsPerSecond, allocations, static_cast<int64_t>(growth)};
  }
};

// The stack that allocated memory, and that of the forward call which caused it, or 0.
using Stacks = std::pair<uint32_t, uint32_t>;

struct RangeGroup {
  RangeRow row;
  Amounts amounts;
  uint64_t inclusive = 0;
  Stacks example;  // the smallest that has a stack
};

class RangeTableMaker {
 public:
  RangeTableMaker(Recording& recording, const RangeQuery& query, RowFilter& filter)
      : recording_(recording),
        query_(query),
        filter_(filter),
        kinds_(recording.kinds()),
        peak_(kinds_.totals().PeakIn(query.lane, query.from, query.to)) {}

  RangeTable Make() {
    const std::vector<Amounts> by_kind = filter_.is_by_kind() ? OfKinds() : OfRows();
    for (const Amounts& amounts : by_kind) total_.Add(amounts);
    AddGroups(by_kind);
    Sort();

    const analysis::Trace& trace = recording_.trace();
    RangeTable table;
    table.total_rows = groups_.size();
    table.total = total_.Result();
    table.peak_event = peak_.step;
    table.from_ns = trace.TimeOf(query_.from);
    table.to_ns = trace.TimeOf(query_.to);
    table.peak_ns = trace.TimeOf(peak_.step);
    const size_t begin = std::min<uint64_t>(query_.offset, groups_.size());
    const size_t end = begin + std::min<size_t>(query_.limit, groups_.size() - begin);
    for (size_t i = begin; i < end; ++i) table.rows.push_back(std::move(groups_[i].row));
    return table;
  }

 private:
  std::vector<Amounts> OfKinds() {
    const RangeTotals& totals = kinds_.totals();
    const auto before = totals.After(query_.from), peak = totals.After(peak_.step),
               after = totals.After(query_.to);
    const analysis::Trace& trace = recording_.trace();
    const int64_t from_ns = trace.TimeOf(query_.from), to_ns = trace.TimeOf(query_.to);
    std::vector<Amounts> by_kind(before.size());
    for (uint32_t kind = 0; kind < by_kind.size(); ++kind) {
      if (kinds_.LaneOf(kind) != query_.lane) continue;
      Amounts& amounts = by_kind[kind];
      amounts.allocations = after[kind].allocations - before[kind].allocations;
      amounts.is_there = amounts.allocations != 0 || before[kind].live_bytes != 0;
      if (!amounts.is_there || !filter_.Matches(kinds_.examples()[kind])) {
        amounts = {};
        continue;
      }
      amounts.bytes = peak[kind].live_bytes;
      amounts.byte_ns = ByteNs(before[kind], from_ns, after[kind], to_ns);
      amounts.growth = after[kind].live_bytes - before[kind].live_bytes;
    }
    return by_kind;
  }

  // For a filter that blocks of one kind may match or not.
  std::vector<Amounts> OfRows() {
    std::vector<Amounts> by_kind(kinds_.examples().size());
    const analysis::Trace& trace = recording_.trace();
    const analysis::Rows& rows = recording_.rows();
    const auto add = [&](RowId row) {
      Amounts& amounts = by_kind[kinds_.Of(row)];
      const uint64_t size = rows.size[row];
      const bool is_born_here = rows.birth[row] > query_.from;
      const int64_t begin = trace.TimeOf(std::max(rows.birth[row], query_.from));
      const int64_t end = trace.TimeOf(std::min(rows.death[row], query_.to));
      if (rows.HeldAfter(row, peak_.step)) amounts.bytes += size;
      amounts.byte_ns += static_cast<double>(size) * static_cast<double>(end - begin);
      if (is_born_here) ++amounts.allocations;
      if (rows.HeldAfter(row, query_.to)) amounts.growth += size;
      if (!is_born_here) amounts.growth -= size;
      amounts.is_there = amounts.is_there || is_born_here || size != 0;
      return true;
    };
    Scope scope;
    scope.lane = query_.lane;
    scope.to = query_.from;
    ForEachRow(recording_, scope, filter_, [&](RowId row, int) { return add(row); });
    scope.of = Scope::kBorn;
    scope.from = query_.from;
    scope.to = query_.to;
    ForEachRow(recording_, scope, filter_, [&](RowId row, int) { return add(row); });
    return by_kind;
  }

  void AddGroups(const std::vector<Amounts>& by_kind) {
    const bool is_by_frame = query_.by == RangeQuery::kModule ||
                             query_.by == RangeQuery::kFunction || query_.by == RangeQuery::kLine;
    if (is_by_frame) return AddFrames(by_kind);
    absl::flat_hash_map<std::string, size_t> by_id;
    for (uint32_t kind = 0; kind < by_kind.size(); ++kind) {
      if (!by_kind[kind].is_there) continue;
      RangeRow row = RowOf(kinds_.examples()[kind]);
      const auto [found, is_new] = by_id.try_emplace(row.id, groups_.size());
      if (is_new) groups_.push_back({std::move(row), {}, 0, {}});
      Add(by_kind[kind], StacksOf(kind), groups_[found->second]);
    }
    for (RangeGroup& group : groups_) group.row.amounts = group.amounts.Result();
  }

  void AddFrames(const std::vector<Amounts>& by_kind) {
    const std::string prefix = query_.by == RangeQuery::kModule     ? "module/"
                               : query_.by == RangeQuery::kFunction ? "function/"
                                                                    : "line/";
    std::map<Stacks, Amounts> by_stacks;  // in order, so that sums are the same every time
    for (uint32_t kind = 0; kind < by_kind.size(); ++kind) {
      if (by_kind[kind].is_there) by_stacks[StacksOf(kind)].Add(by_kind[kind]);
    }
    RangeLabels& labels = recording_.labels(query_.by, query_.folded);
    std::vector<RangeGroup> groups;
    for (const auto& [stacks, amounts] : by_stacks) {
      const RangeLabels::Labels& of = labels.Of(stacks.first, stacks.second);
      if (groups.size() < labels.count()) groups.resize(labels.count());
      Add(amounts, stacks, groups[of.own]);
      for (const uint32_t label : of.all) {
        groups[label].inclusive += amounts.bytes;
        groups[label].amounts.is_there = true;
      }
    }
    for (uint32_t label = 0; label < groups.size(); ++label) {
      RangeGroup& group = groups[label];
      if (!group.amounts.is_there) continue;
      const std::string& text = labels.TextOf(label);
      group.row.name = text.empty() ? std::string(kUnknownName) : text;
      group.row.id = absl::StrCat(prefix, group.row.name);
      if (query_.by == RangeQuery::kLine && group.row.stack != 0) {
        const auto [stack, forward_stack] = group.example;
        const analysis::FrameText* own = recording_.frames.Own(stack, forward_stack);
        group.row.where = own == nullptr ? std::string(kUnknownName)
                                         : analysis::GroupLabel(analysis::GroupBy::kFunction, *own);
      }
      group.row.amounts = group.amounts.Result();
      group.row.inclusive = group.inclusive;
      groups_.push_back(std::move(group));
    }
  }

  static void Add(const Amounts& amounts, const Stacks& stacks, RangeGroup& group) {
    group.amounts.Add(amounts);
    if (stacks.first == 0 || (group.row.stack != 0 && group.example <= stacks)) return;
    group.example = stacks;
    group.row.stack = stacks.first;
  }

  Stacks StacksOf(uint32_t kind) const {
    const RowId example = kinds_.examples()[kind];
    return {recording_.rows().stack[example], recording_.rows().forward_stack[example]};
  }

  RangeRow RowOf(RowId example) {
    const analysis::Rows& rows = recording_.rows();
    RangeRow row;
    switch (query_.by) {
      case RangeQuery::kCategory: {
        const analysis::Category category = recording_.CategoryOf(example);
        row.name = std::string(analysis::NameOf(category));
        row.id = absl::StrCat("category/", static_cast<unsigned>(category));
        break;
      }
      case RangeQuery::kRole:
        row.name = std::string(recording_.RoleOf(example));
        if (row.name.empty()) row.name = std::string(kUnknownName);
        row.id = absl::StrCat("role/", row.name);
        break;
      case RangeQuery::kDtype:
        row.name = recording_.DtypeOf(example);
        if (row.name.empty()) row.name = std::string(kUnknownName);
        row.id = absl::StrCat("dtype/", row.name);
        break;
      case RangeQuery::kThread:
        row.name = ThreadName(rows, example);
        row.id = absl::StrCat("thread/", row.name);
        break;
      case RangeQuery::kStream:
        row.name = StreamName(rows, example);
        row.id = absl::StrCat("stream/", row.name);
        break;
      default: {
        const uint32_t stack = rows.stack[example], forward_stack = rows.forward_stack[example];
        row.name = recording_.frames.Label(stack, forward_stack);
        row.id = absl::StrCat("stack/", stack);
        if (forward_stack != 0) absl::StrAppend(&row.id, "+", forward_stack);
        break;
      }
    }
    return row;
  }

  template <typename KeyOf>
  void SortBy(const KeyOf& key_of) {
    std::sort(groups_.begin(), groups_.end(), [&](const RangeGroup& a, const RangeGroup& b) {
      const auto left = key_of(a.row), right = key_of(b.row);
      if (left != right) return query_.descending ? right < left : left < right;
      return a.row.id < b.row.id;
    });
  }
  void Sort() {
    switch (query_.sort) {
      case RangeQuery::kBytes:
        return SortBy([](const RangeRow& row) { return row.amounts.bytes; });
      case RangeQuery::kInclusive:
        return SortBy(
            [](const RangeRow& row) { return row.inclusive ? *row.inclusive : row.amounts.bytes; });
      case RangeQuery::kByteSeconds:
        return SortBy([](const RangeRow& row) { return row.amounts.byte_seconds; });
      case RangeQuery::kAllocations:
        return SortBy([](const RangeRow& row) { return row.amounts.allocations; });
      case RangeQuery::kGrowth:
        return SortBy([](const RangeRow& row) { return row.amounts.growth; });
      case RangeQuery::kName:
        return SortBy([](const RangeRow& row) { return row.name; });
    }
  }

  Recording& recording_;
  const RangeQuery& query_;
  RowFilter& filter_;
  const RowKinds& kinds_;
  const RangeTotals::Peak peak_;
  Amounts total_;
  std::vector<RangeGroup> groups_;
};

}  // namespace

absl::StatusOr<RangeTable> MakeRangeTable(Recording& recording, const RangeQuery& query) {
  if (query.limit > kMaxTableRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page of a table has at most ", kMaxTableRows, " rows"));
  }
  for (const uint32_t event : {query.from, query.to}) {
    if (absl::Status status = recording.Check(query.lane, event); !status.ok()) return status;
  }
  if (query.from > query.to) return absl::InvalidArgumentError("from: lies behind to");
  absl::StatusOr<RowFilter> filter = RowFilter::Make(recording, query.filter);
  if (!filter.ok()) return filter.status();
  return RangeTableMaker(recording, query, *filter).Make();
}

}  // namespace gmt::viewer
