#include "viewer/questions/range_table.h"

#include <algorithm>
#include <array>
#include <map>
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

struct RangeGroup {
  RangeRow row;
  Amounts amounts;
  uint64_t inclusive = 0;
  Stacks example;  // the smallest that has a stack
};

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
                  AmountsOfKinds amounts)
      : recording_(recording),
        query_(query),
        within_(within),
        kinds_(recording.kinds()),
        amounts_(std::move(amounts)) {}

  RangeTable Make() {
    LeaveOutOthers();
    if (IsByFrame(query_.by)) {
      AddFrames();
    } else {
      AddKinds();
    }
    Sort();

    const analysis::Trace& trace = recording_.trace();
    RangeTable table;
    table.total_rows = groups_.size();
    table.total = total_.Result();
    table.peak_event = amounts_.peak;
    table.from_ns = trace.TimeOf(query_.from);
    table.to_ns = trace.TimeOf(query_.to);
    table.peak_ns = trace.TimeOf(amounts_.peak);
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

  void LeaveOutOthers() {
    for (const auto& [by, id] : within_.blocks()) {
      for (uint32_t kind = 0; kind < amounts_.by_kind.size(); ++kind) {
        Amounts& amounts = amounts_.by_kind[kind];
        if (amounts.is_there && IdOf(by, kinds_.examples()[kind]) != id) amounts = {};
      }
    }
  }

  void AddKinds() {
    absl::flat_hash_map<std::string, size_t> by_id;
    for (uint32_t kind = 0; kind < amounts_.by_kind.size(); ++kind) {
      const Amounts& amounts = amounts_.by_kind[kind];
      if (!amounts.is_there) continue;
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
        groups_.push_back({std::move(row), {}, 0, {}});
      }
      RangeGroup& group = groups_[found->second];
      group.inclusive += amounts.bytes;
      if (frames.is_own) Add(amounts, stacks, group);
    }
    for (RangeGroup& group : groups_) {
      group.row.amounts = group.amounts.Result();
      if (within_.has_frames()) group.row.inclusive = group.inclusive;
    }
  }

  void AddFrames() {
    std::map<Stacks, Amounts> by_stacks;  // in order, so that sums are the same every time
    for (uint32_t kind = 0; kind < amounts_.by_kind.size(); ++kind) {
      const Amounts& amounts = amounts_.by_kind[kind];
      if (amounts.is_there) by_stacks[StacksOf(kind)].Add(amounts);
    }
    RangeLabels& labels = recording_.labels(query_.by, query_.folded);
    std::vector<RangeGroup> groups;
    for (const auto& [stacks, amounts] : by_stacks) {
      const Frames& of = FramesOf(stacks);
      if (groups.size() < labels.count()) groups.resize(labels.count());
      if (of.is_own) Add(amounts, stacks, groups[of.own]);
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
      group.row.id = absl::StrCat(kPrefixes[query_.by], group.row.name);
      if (query_.by == RangeQuery::kLine && group.row.stack != 0) {
        const auto [stack, forward_stack] = group.example;
        const FrameText* own = recording_.frames.Own(stack, forward_stack);
        group.row.where = own == nullptr ? std::string(kUnknownName)
                                         : analysis::GroupLabel(analysis::GroupBy::kFunction, *own);
      }
      group.row.amounts = group.amounts.Result();
      group.row.inclusive = group.inclusive;
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

  void Add(const Amounts& amounts, const Stacks& stacks, RangeGroup& group) {
    total_.Add(amounts);
    group.amounts.Add(amounts);
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
      case RangeQuery::kEndBytes:
        return SortBy([](const RangeRow& row) { return row.amounts.end_bytes; });
      case RangeQuery::kName:
        return SortBy([](const RangeRow& row) { return row.name; });
    }
  }

  Recording& recording_;
  const RangeQuery& query_;
  const Within& within_;
  const RowKinds& kinds_;
  AmountsOfKinds amounts_;
  absl::flat_hash_map<Stacks, Frames> frames_of_;
  Amounts total_;
  std::vector<RangeGroup> groups_;
};

}  // namespace

absl::StatusOr<RangeTable> MakeRangeTable(Recording& recording, const ViewIndex* index,
                                          const RangeQuery& query) {
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
  absl::StatusOr<Within> within = Within::Make(recording, query);
  if (!within.ok()) return within.status();
  absl::StatusOr<AmountsOfKinds> amounts = SumUpKinds(recording, index, query, *filter);
  if (!amounts.ok()) return amounts.status();
  return RangeTableMaker(recording, query, *within, *std::move(amounts)).Make();
}

}  // namespace gmt::viewer
