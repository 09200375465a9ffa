// viewer/questions/questions.h
//
// Questions: answers all queries of the page about one recording other than those of its timelines
// (viewer/index): a block, stacks, amounts by stack or other keys, segments, matching blocks.
//
//   Questions questions(examination, lanes);
//   questions.SetCategories(&categories);      when they are known
//   StatusOr<Table> table = questions.AnswerTable(query);
//
//   Q1  Amounts are those of the lane: the rows of its heap on its device, each with its full size.
//       For every event, the bytes of the live set are the same in table, flame graph, segments and
//       curve.
//   Q2  No answer replays the recording from its beginning (held_rows.h), except queries for a
//       range of events or for the peaks of groups, which are computed once and cached.
//
// Errors: INVALID_ARGUMENT for an invalid query, NOT_FOUND for what the recording lacks; the
// message is for display.
// Ownership: the examination and the categories must outlive it.
// Thread safety: one thread at a time, which must also have exclusive use of the examination.

#ifndef GMT_VIEWER_QUESTIONS_QUESTIONS_H_
#define GMT_VIEWER_QUESTIONS_QUESTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/alive_texts.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

class ViewIndex;  // viewer/index/view_index.h

class Questions {
 public:
  using Lane = LaneMemory;

  static constexpr size_t kMaxSites = 12;

  // `lanes`: in the order of Meta.
  Questions(const analysis::Examination& examination, std::vector<Lane> lanes);
  ~Questions();

  // Until this is called, every category is "unknown".
  void SetCategories(const analysis::Categories* categories);

  // Why blocks are alive. May be read from any thread, while the categories remain set.
  // REQUIRES: SetCategories().
  const analysis::AliveTexts& alive_texts();

  // Returns the keys of the call sites that hold most of a lane after an event, the largest first;
  // at most kMaxSites. REQUIRES: the lane and the event exist.
  std::vector<uint32_t> LargestSites(uint32_t lane, uint32_t event);

  // Computes what the first query would have to wait for: about a second for 100 million events.
  void Prepare();
  // The same for AnswerRange(); to be called after SetCategories().
  void PrepareRanges();

  absl::StatusOr<BlockDetails> AnswerBlock(uint32_t row);
  absl::StatusOr<std::vector<StackInfo>> AnswerStacks(const std::vector<uint32_t>& ids);
  // Fails for files that no stack of the recording names.
  absl::StatusOr<SourceText> AnswerSource(const std::string& path, uint32_t line);
  // Returns the bytes of a lane that match the filter, at these moments
  // (viewer/index/view_index.h).
  absl::StatusOr<PassingCurve> AnswerPassing(uint32_t lane, const Filter& filter,
                                             const ColumnPeaks& columns);
  // Returns what would be reserved on the lane's device with other settings ("KEY:VALUE,...").
  absl::StatusOr<PredictedCurve> AnswerPredicted(uint32_t lane, const std::string& settings,
                                                 const ColumnPeaks& columns);
  absl::StatusOr<FlameTree> AnswerFlame(const FlameQuery& query);
  // Compares with what the other recording (which may be this one) holds in a lane after an event.
  absl::StatusOr<FlameTree> AnswerFlame(const FlameQuery& query, Questions& other,
                                        uint32_t other_lane, uint32_t other_to);
  absl::StatusOr<Table> AnswerTable(const TableQuery& query);
  // `index`: of the same recording, for a query with a box; null: not built yet.
  absl::StatusOr<RangeTable> AnswerRange(const RangeQuery& query, const ViewIndex* index = nullptr);
  absl::StatusOr<Segments> AnswerSegments(uint32_t lane, uint32_t event);
  absl::StatusOr<EventPage> AnswerEvents(const EventsQuery& query);
  // Returns matches from the first one after row `after`; kNoRow: from the first.
  absl::StatusOr<Found> AnswerFind(const Scope& scope, uint32_t after, uint32_t limit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Aligns by the steps of the training loop if both recordings have some, otherwise by time.
Alignment Align(const analysis::Examination& base, const analysis::Examination& other);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_QUESTIONS_H_
