#include "viewer/live/live_window.h"

#include <algorithm>
#include <utility>

namespace gmt::viewer {

using analysis::kNoRow;
using analysis::RowId;
using analysis::TraceBuilder;

RowId RowMove::Of(RowId row) const {
  if (row < moved.size()) return moved[row];
  return next_count + (row - static_cast<RowId>(moved.size()));
}

RowId MovedRow(const RowMoves& moves, uint32_t from, uint32_t to, RowId row) {
  while (from < to && row != kNoRow) {
    const auto move = std::find_if(moves.begin(), moves.end(),
                                   [&](const auto& each) { return each->from == from; });
    if (move == moves.end()) return kNoRow;
    row = (*move)->Of(row);
    ++from;
  }
  return from == to ? row : kNoRow;
}

LiveWindow::LiveWindow(const format::Definitions& definitions, uint32_t max_rows)
    : max_rows_(max_rows), shown_(std::make_unique<TraceBuilder>(definitions)) {}

template <typename Change>
absl::Status LiveWindow::ToBoth(Change change) {
  if (absl::Status status = change(*shown_); !status.ok()) return status;
  return next_ == nullptr ? absl::OkStatus() : change(*next_);
}

absl::Status LiveWindow::OnHeader(const Header& header) {
  return ToBoth([&](TraceBuilder& builder) { return builder.OnHeader(header); });
}
absl::Status LiveWindow::OnSnapshot(const Snapshot& snapshot) {
  return ToBoth([&](TraceBuilder& builder) { return builder.OnSnapshot(snapshot); });
}
absl::Status LiveWindow::OnFacts(const Facts& facts) {
  return ToBoth([&](TraceBuilder& builder) { return builder.OnFacts(facts); });
}
absl::Status LiveWindow::OnLosses(const Losses& losses) {
  return ToBoth([&](TraceBuilder& builder) { return builder.OnLosses(losses); });
}
absl::Status LiveWindow::OnAggregates(const Aggregates& aggregates) {
  return ToBoth([&](TraceBuilder& builder) { return builder.OnAggregates(aggregates); });
}

absl::Status LiveWindow::OnEvents(const format::EventBatch& batch) {
  events_ += batch.events.size();
  absl::Status status = ToBoth([&](TraceBuilder& builder) { return builder.OnEvents(batch); });
  if (!status.ok()) return status;
  const uint64_t room = RoomFor(base_weight_);
  const uint64_t weight = shown_->weight();
  if (next_ == nullptr && weight >= base_weight_ + (room - base_weight_) / 2) BeginNext();
  if (next_ != nullptr && weight >= room) ShowNext();
  return absl::OkStatus();
}

uint64_t LiveWindow::RoomFor(uint64_t held) const {
  constexpr uint64_t kMaxHeld = UINT32_MAX / 8;
  return std::max<uint64_t>(max_rows_, 4 * std::min(held, kMaxHeld));
}

void LiveWindow::BeginNext() {
  next_move_ = std::make_shared<RowMove>();
  next_ = std::make_unique<TraceBuilder>(shown_->BeginAgain(&next_move_->moved));
  next_move_->next_count = next_->row_count();
  next_base_weight_ = next_->weight();
  next_begin_t_ns_ = shown_->end_t_ns();
  next_dropped_steps_ = dropped_steps_ + shown_->step_count();
}

void LiveWindow::ShowNext() {
  next_move_->from = number_++;
  moves_.push_back(std::move(next_move_));
  if (moves_.size() > kMovesKept) moves_.pop_front();
  shown_ = std::move(next_);
  base_weight_ = next_base_weight_;
  begin_t_ns_ = next_begin_t_ns_;
  dropped_steps_ = next_dropped_steps_;
}

}  // namespace gmt::viewer
