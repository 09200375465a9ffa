// viewer/questions/recording.h
//
// Recording: the state shared by all answers about one recording: its lanes, and results that are
// cached for later queries.
//
// Ownership: the examination and the categories must outlive it.
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_RECORDING_H_
#define GMT_VIEWER_QUESTIONS_RECORDING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "analysis/categories/alive_texts.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "viewer/questions/event_list.h"
#include "viewer/questions/frame_table.h"
#include "viewer/questions/group_history.h"
#include "viewer/questions/held_rows.h"
#include "viewer/questions/live_samples.h"
#include "viewer/questions/loop_phases.h"
#include "viewer/questions/queries.h"
#include "viewer/questions/range_labels.h"
#include "viewer/questions/row_kinds.h"
#include "viewer/questions/source_text.h"

namespace gmt::viewer {

// The number of blocks of the scope that was searched last (viewer/questions/find.h).
struct FoundTotal {
  Scope scope;
  uint64_t total = 0;
};

struct Recording {
  Recording(const analysis::Examination& of, std::vector<LaneMemory> its_lanes)
      : examination(of), lanes(std::move(its_lanes)), frames(of), held(of.trace()), sources(of) {}

  const analysis::Trace& trace() const { return examination.trace(); }
  const analysis::Rows& rows() const { return examination.trace().rows; }
  const LoopPhases& phases() {
    if (!phases_) phases_.emplace(examination);
    return *phases_;
  }

  // REQUIRES: categories are known.
  const analysis::AliveTexts& alive_texts() {
    if (!alive_texts_) alive_texts_.emplace(examination, *categories);
    return *alive_texts_;
  }

  // What the tables of ranges add up; of the categories that are known by then.
  const RowKinds& kinds() {
    if (!kinds_) MakeKinds();
    return *kinds_;
  }
  void MakeKinds(analysis::Step spacing = analysis::RangeTotals::kSpacing) {
    kinds_.emplace(*this, spacing);
  }
  void ForgetKinds() { kinds_.reset(); }
  RangeLabels& labels(RangeQuery::By by, bool folded) {
    return labels_.try_emplace({by, folded}, frames, by, folded).first->second;
  }

  // Returns the first reason why a block was alive, such as "a parameter"; "" if it is not known.
  std::string_view RoleOf(analysis::RowId row) {
    return categories == nullptr ? "" : alive_texts().RoleOf(row);
  }
  // Returns the type of a block's tensor, or "".
  std::string DtypeOf(analysis::RowId row) const;

  bool IsIn(const LaneMemory& lane, analysis::RowId row) const {
    return rows().heap[row] == lane.heap && rows().device[row] == lane.device;
  }
  analysis::Category CategoryOf(analysis::RowId row) const {
    return categories == nullptr ? analysis::Category::kUnknown : categories->Of(row).category;
  }
  const EventList& events(int32_t device) {
    return events_.try_emplace(device, examination, device).first->second;
  }

  // Returns INVALID_ARGUMENT if there is no such lane or event.
  absl::Status Check(uint32_t lane, uint32_t event) const;

  const analysis::Examination& examination;
  const analysis::Categories* categories = nullptr;  // null: not known yet
  std::vector<LaneMemory> lanes;
  FrameTable frames;
  HeldRows held;
  GroupHistories histories;
  LiveSamples samples;
  SourceTexts sources;
  std::optional<FoundTotal> found_total;

 private:
  std::optional<LoopPhases> phases_;
  std::optional<analysis::AliveTexts> alive_texts_;
  std::optional<RowKinds> kinds_;
  std::map<int32_t, EventList> events_;                            // by device
  std::map<std::pair<RangeQuery::By, bool>, RangeLabels> labels_;  // by grouping and whether folded
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_RECORDING_H_
