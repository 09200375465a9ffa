// viewer/live/live_window.h
//
// LiveWindow: the newest part of an unbounded recording, as a trace: what was held at its
// beginning, with the time and the stack of each birth, and everything since.
//
//   rows   |-- held --|-- half --|-- half --|
//   A      ....................>|             the window that is shown
//   B                 ..........>-------->    begun when A was half full; shown when A is full
//
// Except in the first half of a window, two builders get each event. Nothing is read or stored
// twice, and memory is bounded by the rows of one and a half windows. A window has `max_rows` rows,
// or four times the number of rows held at its beginning if that is more; ranges, marks and samples
// count as rows.
//
// Invariants
//   L1  SoFar() equals what a TraceBuilder builds from a recording that begins where the window
//       does.
//   L2  Amounts, curves and stacks inside the window are those of the whole recording.
//   L3  Row and step numbers change only with number(); MovedRow() and dropped_steps() translate
//       them.
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_LIVE_LIVE_WINDOW_H_
#define GMT_VIEWER_LIVE_LIVE_WINDOW_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "analysis/trace/trace.h"
#include "analysis/trace/trace_builder.h"
#include "format/definitions.h"
#include "format/recording_reader.h"

namespace gmt::viewer {

// Maps the rows of a window to those of the next one.
struct RowMove {
  uint32_t from = 0;                   // number of the window
  std::vector<analysis::RowId> moved;  // of the rows that existed when the next one began
  uint32_t next_count = 0;             // number of rows of the next one at that time

  // Returns kNoRow if the row ended before the next window began.
  analysis::RowId Of(analysis::RowId row) const;
};
using RowMoves = std::deque<std::shared_ptr<const RowMove>>;

// Translates `row` of window `from` through all `moves` since; kNoRow if it is gone or `from` is
// too old.
analysis::RowId MovedRow(const RowMoves& moves, uint32_t from, uint32_t to, analysis::RowId row);

class LiveWindow : public format::RecordingVisitor {
 public:
  // A window of so many rows is indexed and drawn within a second even on a busy machine.
  static constexpr uint32_t kMaxRows = 500'000;
  static constexpr size_t kMovesKept = 2;

  // `definitions` must outlive it and grow ahead of the events.
  explicit LiveWindow(const format::Definitions& definitions, uint32_t max_rows = kMaxRows);

  absl::Status OnHeader(const Header& header) override;
  absl::Status OnEvents(const format::EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;
  absl::Status OnFacts(const Facts& facts) override;
  absl::Status OnLosses(const Losses& losses) override;
  absl::Status OnAggregates(const Aggregates& aggregates) override;

  // Returns a copy of the whole window.
  analysis::Trace SoFar() const { return shown_->SoFar(); }

  uint32_t number() const { return number_; }
  int64_t begin_t_ns() const { return begin_t_ns_; }  // 0: the beginning of the recording
  uint64_t dropped_steps() const { return dropped_steps_; }
  const RowMoves& moves() const { return moves_; }
  uint64_t events() const { return events_; }  // total passed in
  uint32_t rows() const { return shown_->row_count(); }
  int64_t end_t_ns() const { return shown_->end_t_ns(); }

 private:
  // Applies a change to both windows.
  template <typename Change>
  absl::Status ToBoth(Change change);
  void BeginNext();
  void ShowNext();
  uint64_t RoomFor(uint64_t held) const;

  const uint32_t max_rows_;
  std::unique_ptr<analysis::TraceBuilder> shown_, next_;  // next_: null in the first half
  uint64_t base_weight_ = 0;                              // held at the beginning
  uint64_t next_base_weight_ = 0;
  int64_t begin_t_ns_ = 0, next_begin_t_ns_ = 0;
  uint64_t dropped_steps_ = 0, next_dropped_steps_ = 0;
  std::shared_ptr<RowMove> next_move_;

  uint32_t number_ = 0;
  uint64_t events_ = 0;
  RowMoves moves_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_LIVE_LIVE_WINDOW_H_
