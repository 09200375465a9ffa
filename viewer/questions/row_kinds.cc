#include "viewer/questions/row_kinds.h"

#include <algorithm>
#include <string_view>

#include "viewer/questions/recording.h"

namespace gmt::viewer {
namespace {

using analysis::RangeTotals;
using analysis::RowId;

// Numbers kinds in order of first use. Few kinds share a stack, so those of a stack are a list.
class KindNumbers {
 public:
  KindNumbers(Recording& recording, std::vector<RowId>& examples)
      : recording_(recording),
        examples_(examples),
        of_stack_(recording.frames.definitions().stack_count() + size_t{2}, RangeTotals::kNoKind) {}

  uint32_t Of(RowId row) {
    // Ids in a damaged file may be arbitrary: those out of range share a list.
    const size_t stack = std::min<size_t>(recording_.rows().stack[row], of_stack_.size() - 1);
    const std::string_view role = recording_.RoleOf(row);
    uint32_t* kind = &of_stack_[stack];
    while (*kind != RangeTotals::kNoKind && !IsLike(row, role, *kind)) kind = &next_[*kind];
    if (*kind != RangeTotals::kNoKind) return *kind;
    const auto added = static_cast<uint32_t>(examples_.size());
    *kind = added;  // before next_ grows and moves what it points to
    examples_.push_back(row);
    next_.push_back(RangeTotals::kNoKind);
    roles_.push_back(role);
    return added;
  }

 private:
  bool IsLike(RowId a, std::string_view role, uint32_t kind) const {
    const RowId b = examples_[kind];
    constexpr uint16_t kKnown = analysis::kRowHasStream | analysis::kRowHasThread;
    const analysis::Rows& rows = recording_.rows();
    return rows.stack[a] == rows.stack[b] && rows.forward_stack[a] == rows.forward_stack[b] &&
           rows.heap[a] == rows.heap[b] && ((rows.flags[a] ^ rows.flags[b]) & kKnown) == 0 &&
           rows.stream[a] == rows.stream[b] && rows.thread[a] == rows.thread[b] &&
           rows.device[a] == rows.device[b] &&
           recording_.CategoryOf(a) == recording_.CategoryOf(b) && rows.Name(a) == rows.Name(b) &&
           rows.Dtype(a) == rows.Dtype(b) && role == roles_[kind];
  }

  Recording& recording_;
  std::vector<RowId>& examples_;
  std::vector<uint32_t> of_stack_;  // the first kind
  std::vector<uint32_t> next_;      // by kind
  std::vector<std::string_view> roles_;
};

}  // namespace

RowKinds::RowKinds(Recording& recording, analysis::Step spacing)
    : totals_(recording.trace(), Number(recording), spacing) {}

RangeTotals::Kinds RowKinds::Number(Recording& recording) {
  RangeTotals::Kinds kinds;
  const auto lane_count = static_cast<uint32_t>(recording.lanes.size());
  kinds.lane_count = lane_count + 1;  // the last one: rows in no lane
  KindNumbers numbers(recording, examples_);
  kinds.of_rows.reserve(recording.rows().count());
  for (RowId row = 0; row < recording.rows().count(); ++row) {
    const size_t known = examples_.size();
    const uint32_t kind = numbers.Of(row);
    kinds.of_rows.push_back(kind);
    if (kind != known) continue;
    uint32_t lane = 0;
    while (lane < lane_count && !recording.IsIn(recording.lanes[lane], row)) ++lane;
    kinds.lanes.push_back(lane);
  }
  return kinds;
}

}  // namespace gmt::viewer
