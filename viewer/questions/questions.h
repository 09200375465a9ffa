// viewer/questions/questions.h
//
// Questions: everything that the page asks about one recording beside what its timelines show
// (viewer/index): a block, stacks, amounts by stack and by whatever else, segments, blocks that match.
//
//   Questions questions(examination, lanes);
//   questions.SetCategories(&categories);      once they are known
//   StatusOr<Table> table = questions.AnswerTable(query);
//
//   Q1  Amounts are those of the lane: the rows of its heap on its device, each with its whole size.
//       For every event the live set's bytes are the same in table, flame graph, segments and curve.
//   Q2  No answer replays the recording from its beginning (held_rows.h), but where a range of events
//       is asked for, or the peaks of groups: those are found once and kept.
//
// Errors: INVALID_ARGUMENT for a question that makes no sense, NOT_FOUND for what the recording lacks;
// the message is for a person.
// Ownership: the examination and the categories must outlive it.
// Thread safety: one thread at a time, and while nobody else uses the examination.

#ifndef GMT_VIEWER_QUESTIONS_QUESTIONS_H_
#define GMT_VIEWER_QUESTIONS_QUESTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

class Questions {
 public:
  // What a timeline shows: the memory of one heap on one device (kHostDevice: of the host).
  struct Lane {
    int32_t device = 0;
    uint32_t heap = 0;  // of Trace::heaps
  };

  // `lanes`: as Meta numbers them.
  Questions(const analysis::Examination& examination, std::vector<Lane> lanes);
  ~Questions();

  // Until then everything is "unknown".
  void SetCategories(const analysis::Categories* categories);

  // Finds out what the first question would have to wait for: about a second for 100 million events.
  void Prepare();

  absl::StatusOr<BlockDetails> AnswerBlock(uint32_t row);
  absl::StatusOr<std::vector<StackInfo>> AnswerStacks(const std::vector<uint32_t>& ids);
  // Only of files that a stack of the recording names.
  absl::StatusOr<SourceText> AnswerSource(const std::string& path, uint32_t line);
  // What of a lane the filter lets through, at those moments (viewer/index/view_index.h).
  absl::StatusOr<PassingCurve> AnswerPassing(uint32_t lane, const Filter& filter,
                                             const ColumnMiddles& columns);
  absl::StatusOr<FlameTree> AnswerFlame(const FlameQuery& query);
  // Against what the other recording (it may be this one) holds in a lane after an event.
  absl::StatusOr<FlameTree> AnswerFlame(const FlameQuery& query, Questions& other,
                                        uint32_t other_lane, uint32_t other_to);
  absl::StatusOr<Table> AnswerTable(const TableQuery& query);
  absl::StatusOr<Segments> AnswerSegments(uint32_t lane, uint32_t event);
  // From the first match behind the row `after`; kNoRow: from the first.
  absl::StatusOr<Found> AnswerFind(const Scope& scope, uint32_t after, uint32_t limit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// By the steps of the training loop where both have some, else by time.
Alignment Align(const analysis::Examination& base, const analysis::Examination& other);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_QUESTIONS_H_
