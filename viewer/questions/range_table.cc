#include "viewer/questions/range_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "analysis/report/report.h"
#include "viewer/index/names.h"
#include "viewer/questions/range_amounts.h"

namespace gmt::viewer {
namespace {

using analysis::FrameText;
using analysis::RowId;

// The beginnings of ids, by RangeQuery::By.
constexpr std::array<absl::string_view, 9> kPrefixes = {"category/", "role/",     "dtype/",
                                                        "module/",   "function/", "line/",
                                                        "stack/",    "thread/",   "stream/"};

bool IsByFrame(RangeQuery::By by) {
  return by == RangeQuery::kModule || by == RangeQuery::kFunction || by == RangeQuery::kLine;
}

// The stack that allocated memory, and that of the forward call which caused it, or 0.
using Stacks = std::pair<uint32_t, uint32_t>;

// What a kind of blocks, or a row, has in the range, and in the other range of the query.
struct Sides {
  Amounts range, other;

  bool is_there() const { return range.is_there || other.is_there; }
  void Add(const Sides& more) {
    range.Add(more.range);
    other.Add(more.other);
  }
};

struct SidesOfKinds {
  std::vector<Sides> by_kind;
  uint32_t peak = 0, other_peak = 0;  // events
};

struct RangeGroup {
  RangeRow row;
  Sides sides;
  uint64_t inclusive = 0, other_inclusive = 0;
  bool is_there = false;
  Stacks example;  // the smallest that has a stack

  void AddInclusive(const Sides& more) {
    inclusive += more.range.bytes;
    other_inclusive += more.other.bytes;
    is_there = true;
  }
};

double SecondsOf(const RangeTotal& total) {
  return static_cast<double>(total.to_ns - total.from_ns) / kNsPerSecond;
}

// Returns what is sorted. REQUIRES: not by name.
double MeasureOf(RangeQuery::Sort sort, const RangeAmounts& amounts,
                 std::optional<uint64_t> inclusive, double seconds) {
  switch (sort) {
    case RangeQuery::kInclusive:
      return static_cast<double>(inclusive.value_or(amounts.bytes));
    case RangeQuery::kByteSeconds:
      return amounts.byte_seconds;
    case RangeQuery::kMeanBytes:
      return seconds > 0 ? amounts.byte_seconds / seconds : static_cast<double>(amounts.end_bytes);
    case RangeQuery::kAllocations:
      return static_cast<double>(amounts.allocations);
    case RangeQuery::kAllocationRate:
      return seconds > 0 ? static_cast<double>(amounts.allocations) / seconds : 0;
    case RangeQuery::kGrowth:
      return static_cast<double>(amounts.growth);
    case RangeQuery::kEndBytes:
      return static_cast<double>(amounts.end_bytes);
    case RangeQuery::kBytes:
    case RangeQuery::kName:
      break;
  }
  return static_cast<double>(amounts.bytes);
}

// The rows that a table is within.
class Within {
 public:
  static absl::StatusOr<Within> Make(Recording& recording, const RangeQuery& query) {
    Within within(recording, query.folded);
    for (const std::string& id : query.within) {
      const auto prefix =
          std::find_if(kPrefixes.begin(), kPrefixes.end(),
                       [&](absl::string_view each) { return absl::StartsWith(id, each); });
      if (prefix == kPrefixes.end()) {
        return absl::InvalidArgumentError(absl::StrCat("within: '", id, "' is no id of a row"));
      }
      const auto by = static_cast<RangeQuery::By>(prefix - kPrefixes.begin());
      if (IsByFrame(by)) {
        within.frames_.push_back({&recording.labels(by, query.folded), id.substr(prefix->size())});
      } else {
        within.blocks_.emplace_back(by, id);
      }
    }
    return within;
  }

  bool has_frames() const { return !frames_.empty(); }
  const std::vector<std::pair<RangeQuery::By, std::string>>& blocks() const { return blocks_; }

  // Returns whether one frame is of all the modules, functions and lines. `frame`: null if a stack
  // has no frame of the program's own.
  bool OwnFits(const FrameText* frame) const {
    return std::all_of(frames_.begin(), frames_.end(), [&](const FrameRow& row) {
      const uint32_t label = frame == nullptr ? RangeLabels::kUnknown : row.labels->LabelOf(*frame);
      return label == RangeLabels::kUnknown ? row.text == kUnknownName
                                            : row.text == row.labels->TextOf(label);
    });
  }

  // Calls visit(frame) for each frame that fits, of both stacks.
  template <typename Visit>
  void ForEachFrame(const Stacks& stacks, const Visit& visit) const {
    for (const uint32_t stack : {stacks.first, stacks.second}) {
      for (const FrameText* frame : recording_.frames.Frames(stack)) {
        if (folded_ && frame->is_noise()) continue;
        const bool fits = std::all_of(frames_.begin(), frames_.end(), [&](const FrameRow& row) {
          const uint32_t label = row.labels->LabelOf(*frame);
          return label != RangeLabels::kUnknown && row.text == row.labels->TextOf(label);
        });
        if (fits) visit(*frame);
      }
    }
  }

 private:
  struct FrameRow {
    RangeLabels* labels = nullptr;
    std::string text;
  };

  Within(Recording& recording, bool folded) : recording_(recording), folded_(folded) {}

  Recording& recording_;
  const bool folded_;
  std::vector<FrameRow> frames_;
  std::vector<std::pair<RangeQuery::By, std::string>> blocks_;  // ids
};

class RangeTableMaker {
 public:
  RangeTableMaker(Recording& recording, const RangeQuery& query, const Within& within,
                  SidesOfKinds sides)
      : recording_(recording),
        query_(query),
        within_(within),
        kinds_(recording.kinds()),
        sides_(std::move(sides)) {}

  RangeTable Make() {
    LeaveOutOthers();
    if (IsByFrame(query_.by)) {
      AddFrames();
    } else {
      AddKinds();
    }

    RangeTable table;
    static_cast<RangeTotal&>(table) = TotalOf(query_, total_.range, sides_.peak);
    if (query_.other) table.other = TotalOf(*query_.other, total_.other, sides_.other_peak);
    Sort(table, table.other);
    table.total_rows = groups_.size();
    const size_t begin = std::min<uint64_t>(query_.offset, groups_.size());
    const size_t end = begin + std::min<size_t>(query_.limit, groups_.size() - begin);
    for (size_t i = begin; i < end; ++i) table.rows.push_back(std::move(groups_[i].row));
    return table;
  }

 private:
  // Which frames of a stack are within the rows of the query.
  struct Frames {
    bool is_own = false;  // the program's own frame
    bool is_any = false;  // this or any other
    uint32_t own = RangeLabels::kUnknown;
    std::vector<uint32_t> all;  // labels, each once
  };

  RangeTotal TotalOf(const EventRange& range, const Amounts& total, uint32_t peak) const {
    const analysis::Trace& trace = recording_.trace();
    return {total.Result(), peak, trace.TimeOf(range.from), trace.TimeOf(range.to),
            trace.TimeOf(peak)};
  }

  void LeaveOutOthers() {
    for (const auto& [by, id] : within_.blocks()) {
      for (uint32_t kind = 0; kind < sides_.by_kind.size(); ++kind) {
        Sides& sides = sides_.by_kind[kind];
        if (sides.is_there() && IdOf(by, kinds_.examples()[kind]) != id) sides = {};
      }
    }
  }

  void AddKinds() {
    absl::flat_hash_map<std::string, size_t> by_id;
    for (uint32_t kind = 0; kind < sides_.by_kind.size(); ++kind) {
      const Sides& sides = sides_.by_kind[kind];
      if (!sides.is_there()) continue;
      const Stacks stacks = StacksOf(kind);
      const Frames& frames = FramesOf(stacks);
      if (!frames.is_any) continue;
      const RowId example = kinds_.examples()[kind];
      std::string id = IdOf(query_.by, example);
      const auto [found, is_new] = by_id.try_emplace(id, groups_.size());
      if (is_new) {
        RangeRow row;
        row.id = std::move(id);
        row.name = NameOf(example);
        groups_.emplace_back();
        groups_.back().row = std::move(row);
      }
      RangeGroup& group = groups_[found->second];
      group.AddInclusive(sides);
      if (frames.is_own) Add(sides, stacks, group);
    }
    for (RangeGroup& group : groups_) SetAmounts(group, within_.has_frames());
  }

  void AddFrames() {
    std::map<Stacks, Sides> by_stacks;  // in order, so that sums are the same every time
    for (uint32_t kind = 0; kind < sides_.by_kind.size(); ++kind) {
      const Sides& sides = sides_.by_kind[kind];
      if (sides.is_there()) by_stacks[StacksOf(kind)].Add(sides);
    }
    RangeLabels& labels = recording_.labels(query_.by, query_.folded);
    std::vector<RangeGroup> groups;
    for (const auto& [stacks, sides] : by_stacks) {
      const Frames& of = FramesOf(stacks);
      if (groups.size() < labels.count()) groups.resize(labels.count());
      if (of.is_own) Add(sides, stacks, groups[of.own]);
      for (const uint32_t label : of.all) groups[label].AddInclusive(sides);
    }
    for (uint32_t label = 0; label < groups.size(); ++label) {
      RangeGroup& group = groups[label];
      if (!group.is_there) continue;
      const std::string& text = labels.TextOf(label);
      group.row.name = text.empty() ? std::string(kUnknownName) : text;
      group.row.id = absl::StrCat(kPrefixes[query_.by], group.row.name);
      if (query_.by == RangeQuery::kLine && group.row.stack != 0) {
        const auto [stack, forward_stack] = group.example;
        const FrameText* own = recording_.frames.Own(stack, forward_stack);
        group.row.where = own == nullptr ? std::string(kUnknownName)
                                         : analysis::GroupLabel(analysis::GroupBy::kFunction, *own);
      }
      SetAmounts(group, true);
      groups_.push_back(std::move(group));
    }
  }

  // Valid until the next call.
  const Frames& FramesOf(const Stacks& stacks) {
    const auto [found, is_new] = frames_of_.try_emplace(stacks);
    Frames& frames = found->second;
    if (!is_new) return frames;
    const bool has_labels = IsByFrame(query_.by);
    if (!within_.has_frames()) {
      frames.is_own = frames.is_any = true;
      if (!has_labels) return frames;
      const RangeLabels::Labels& labels =
          recording_.labels(query_.by, query_.folded).Of(stacks.first, stacks.second);
      frames.own = labels.own;
      frames.all = labels.all;
      return frames;
    }
    RangeLabels* labels = has_labels ? &recording_.labels(query_.by, query_.folded) : nullptr;
    const FrameText* own = recording_.frames.Own(stacks.first, stacks.second);
    frames.is_own = frames.is_any = within_.OwnFits(own);
    if (frames.is_own && has_labels) {
      if (own != nullptr) frames.own = labels->LabelOf(*own);
      frames.all.push_back(frames.own);
    }
    within_.ForEachFrame(stacks, [&](const FrameText& frame) {
      frames.is_any = true;
      if (!has_labels) return;
      const uint32_t label = labels->LabelOf(frame);
      if (label != RangeLabels::kUnknown) frames.all.push_back(label);
    });
    std::sort(frames.all.begin(), frames.all.end());
    frames.all.erase(std::unique(frames.all.begin(), frames.all.end()), frames.all.end());
    return frames;
  }

  void SetAmounts(RangeGroup& group, bool is_inclusive) const {
    group.row.amounts = group.sides.range.Result();
    if (is_inclusive) group.row.inclusive = group.inclusive;
    if (!query_.other) return;
    group.row.other = group.sides.other.Result();
    if (is_inclusive) group.row.other_inclusive = group.other_inclusive;
  }

  void Add(const Sides& sides, const Stacks& stacks, RangeGroup& group) {
    total_.Add(sides);
    group.sides.Add(sides);
    group.is_there = true;
    if (stacks.first == 0 || (group.row.stack != 0 && group.example <= stacks)) return;
    group.example = stacks;
    group.row.stack = stacks.first;
  }

  Stacks StacksOf(uint32_t kind) const {
    const RowId example = kinds_.examples()[kind];
    return {recording_.rows().stack[example], recording_.rows().forward_stack[example]};
  }

  // Returns the id of the row of a block. REQUIRES: not by frame.
  std::string IdOf(RangeQuery::By by, RowId row) {
    const analysis::Rows& rows = recording_.rows();
    switch (by) {
      case RangeQuery::kCategory:
        return absl::StrCat(kPrefixes[by], static_cast<unsigned>(recording_.CategoryOf(row)));
      case RangeQuery::kStack: {
        const uint32_t stack = rows.stack[row], forward_stack = rows.forward_stack[row];
        if (forward_stack == 0) return absl::StrCat(kPrefixes[by], stack);
        return absl::StrCat(kPrefixes[by], stack, "+", forward_stack);
      }
      default:
        return absl::StrCat(kPrefixes[by], TextOf(by, row));
    }
  }

  // Returns the name of the row of a block. REQUIRES: not by frame.
  std::string NameOf(RowId row) {
    const analysis::Rows& rows = recording_.rows();
    switch (query_.by) {
      case RangeQuery::kCategory:
        return std::string(analysis::NameOf(recording_.CategoryOf(row)));
      case RangeQuery::kStack:
        return recording_.frames.Label(rows.stack[row], rows.forward_stack[row]);
      default:
        return TextOf(query_.by, row);
    }
  }

  // Returns the text that is both the name of a row and the end of its id.
  std::string TextOf(RangeQuery::By by, RowId row) {
    std::string text;
    if (by == RangeQuery::kRole) text = std::string(recording_.RoleOf(row));
    if (by == RangeQuery::kDtype) text = recording_.DtypeOf(row);
    if (by == RangeQuery::kThread) text = ThreadName(recording_.rows(), row);
    if (by == RangeQuery::kStream) text = StreamName(recording_.rows(), row);
    return text.empty() ? std::string(kUnknownName) : text;
  }

  template <typename KeyOf>
  void SortBy(const KeyOf& key_of) {
    std::sort(groups_.begin(), groups_.end(), [&](const RangeGroup& a, const RangeGroup& b) {
      const auto left = key_of(a.row), right = key_of(b.row);
      if (left != right) return query_.descending ? right < left : left < right;
      return a.row.id < b.row.id;
    });
  }
  void Sort(const RangeTotal& total, const std::optional<RangeTotal>& other) {
    if (query_.sort == RangeQuery::kName) {
      return SortBy([](const RangeRow& row) -> const std::string& { return row.name; });
    }
    const double seconds = SecondsOf(total), other_seconds = other ? SecondsOf(*other) : 0;
    const bool has_this = !other || query_.side != RangeQuery::kOther;
    const bool has_other = other && query_.side != RangeQuery::kThis;
    SortBy([&](const RangeRow& row) {
      const double here =
          has_this ? MeasureOf(query_.sort, row.amounts, row.inclusive, seconds) : 0;
      if (!has_other) return here;
      const double there = MeasureOf(query_.sort, *row.other, row.other_inclusive, other_seconds);
      return has_this ? here - there : there;
    });
  }

  Recording& recording_;
  const RangeQuery& query_;
  const Within& within_;
  const RowKinds& kinds_;
  SidesOfKinds sides_;
  absl::flat_hash_map<Stacks, Frames> frames_of_;
  Sides total_;
  std::vector<RangeGroup> groups_;
};

absl::Status CheckRange(const Recording& recording, uint32_t lane, const EventRange& range) {
  for (const uint32_t event : {range.from, range.to}) {
    if (absl::Status status = recording.Check(lane, event); !status.ok()) return status;
  }
  if (range.from > range.to) return absl::InvalidArgumentError("from: lies behind to");
  return absl::OkStatus();
}

absl::StatusOr<SidesOfKinds> SumUpSides(Recording& recording, const ViewIndex* index,
                                        const RangeQuery& query, RowFilter& filter) {
  const auto range = SumUpKinds(recording, index, query.lane, query, filter);
  if (!range.ok()) return range.status();
  SidesOfKinds sides;
  sides.peak = range->peak;
  sides.by_kind.resize(range->by_kind.size());
  for (size_t kind = 0; kind < sides.by_kind.size(); ++kind) {
    sides.by_kind[kind].range = range->by_kind[kind];
  }
  if (!query.other) return sides;
  const auto other = SumUpKinds(recording, index, query.lane, *query.other, filter);
  if (!other.ok()) return other.status();
  sides.other_peak = other->peak;
  for (size_t kind = 0; kind < sides.by_kind.size(); ++kind) {
    sides.by_kind[kind].other = other->by_kind[kind];
  }
  return sides;
}

}  // namespace

absl::StatusOr<RangeTable> MakeRangeTable(Recording& recording, const ViewIndex* index,
                                          const RangeQuery& query) {
  if (query.limit > kMaxTableRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page of a table has at most ", kMaxTableRows, " rows"));
  }
  if (absl::Status status = CheckRange(recording, query.lane, query); !status.ok()) return status;
  if (query.other) {
    absl::Status status = CheckRange(recording, query.lane, *query.other);
    if (!status.ok()) return status;
  }
  absl::StatusOr<RowFilter> filter = RowFilter::Make(recording, query.filter);
  if (!filter.ok()) return filter.status();
  absl::StatusOr<Within> within = Within::Make(recording, query);
  if (!within.ok()) return within.status();
  absl::StatusOr<SidesOfKinds> sides = SumUpSides(recording, index, query, *filter);
  if (!sides.ok()) return sides.status();
  return RangeTableMaker(recording, query, *within, *std::move(sides)).Make();
}

}  // namespace gmt::viewer
