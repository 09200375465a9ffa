#include "viewer/questions/held_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gmt::viewer {

using analysis::kNoRow;
using analysis::RowId;
using analysis::Step;

bool HeldRows::IsThereAfter(RowId row, Step step) const {
  const analysis::Rows& rows = trace_.rows;
  return rows.birth[row] <= step && std::max(rows.death[row], rows.Completed(row)) > step;
}

std::vector<RowId> HeldRows::FromBefore() const {
  std::vector<RowId> found;
  const analysis::Rows& rows = trace_.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0 && IsThereAfter(row, 0)) found.push_back(row);
  }
  return found;
}

std::vector<RowId> HeldRows::Advance(const Checkpoint& from, Step to) const {
  std::vector<RowId> found;
  found.reserve(from.rows.size());
  for (const RowId row : from.rows) {
    if (IsThereAfter(row, to)) found.push_back(row);
  }
  for (Step step = from.step + 1; step <= to; ++step) {
    const analysis::StepRecord record = trace_.steps[step - 1];
    if (record.is_death || record.row == kNoRow) continue;
    if (trace_.rows.birth[record.row] == step && IsThereAfter(record.row, to)) {
      found.push_back(record.row);
    }
  }
  return found;
}

void HeldRows::Prepare() {
  if (!checkpoints_.empty()) return;
  checkpoints_.push_back({0, FromBefore()});
  ids_ = checkpoints_.front().rows.size();
  const Step last = trace_.last_step();
  while (last - checkpoints_.back().step > spacing_) {
    const Step next = checkpoints_.back().step + spacing_;
    checkpoints_.push_back({next, Advance(checkpoints_.back(), next)});
    ids_ += checkpoints_.back().rows.size();
    while (ids_ > max_ids_ && checkpoints_.size() > 1) Thin();
  }
}

// Drops every second checkpoint.
void HeldRows::Thin() {
  std::vector<Checkpoint> kept;
  ids_ = 0;
  for (size_t i = 0; i < checkpoints_.size(); i += 2) {
    ids_ += checkpoints_[i].rows.size();
    kept.push_back(std::move(checkpoints_[i]));
  }
  checkpoints_ = std::move(kept);
  spacing_ = spacing_ > analysis::kNever / 2 ? analysis::kNever : spacing_ * 2;
}

std::vector<RowId> HeldRows::After(Step event) {
  Prepare();
  const auto behind = std::upper_bound(
      checkpoints_.begin(), checkpoints_.end(), event,
      [](Step step, const Checkpoint& checkpoint) { return step < checkpoint.step; });
  return Advance(*std::prev(behind), event);
}

}  // namespace gmt::viewer
