#include "format/snapshot_delta.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "format/live_columns.h"

namespace gmt::format {
namespace {

absl::Status Contradicts(const gmt::SnapshotDelta& delta) {
  return absl::DataLossError(absl::StrCat("the snapshot ", delta.snapshot().name(),
                                          " does not match ", delta.base(), ", its base"));
}

// The roles of rows of the base at the time of the delta. Of() must be called in row order.
class RolesNow {
 public:
  // REQUIRES: delta outlives it and has a value in changed_roles for each one in changed.
  explicit RolesNow(const gmt::SnapshotDelta& delta) : delta_(delta) { AddDifference(); }

  // Returns whether all changed rows have been asked for.
  bool at_end() const { return next_ == delta_.changed_size(); }

  uint32_t Of(const LiveCursor& row) {
    if (at_end() || row.row() != changed_) return row.roles();
    const uint32_t roles = delta_.changed_roles(next_++);
    AddDifference();
    return roles;
  }

 private:
  void AddDifference() {
    if (!at_end()) changed_ += delta_.changed(next_);
  }

  const gmt::SnapshotDelta& delta_;
  int next_ = 0;
  uint64_t changed_ = 0;  // the next changed row
};

}  // namespace

void SnapshotBase::Set(const gmt::Snapshot& whole) {
  Clear();
  if (whole.live().count() > kMaxRows) return;
  name_ = whole.name();
  live_ = whole.live();
}

bool SnapshotBase::Difference(gmt::Snapshot* snapshot, gmt::SnapshotDelta* delta) const {
  if (!name_.has_value() || snapshot->live().count() > kMaxRows) return false;
  delta->Clear();
  uint32_t last_ended = 0, last_changed = 0;
  LiveCursor then(&live_), now(&snapshot->live());
  for (; !then.at_end(); then.Next()) {
    if (!now.at_end() && then.SameRow(now)) {
      if (then.roles() != now.roles()) {
        delta->add_changed(then.row() - last_changed);
        delta->add_changed_roles(now.roles());
        last_changed = then.row();
      }
      now.Next();
      continue;
    }
    delta->add_ended(then.row() - last_ended);
    last_ended = then.row();
  }
  const uint32_t kept = now.row();
  if (kept < snapshot->live().count() - kept) return false;
  gmt::Live added;
  LiveAppender rows(&added);
  for (; !now.at_end(); now.Next()) rows.Append(now);
  rows.Finish();
  snapshot->mutable_live()->Swap(&added);
  delta->mutable_snapshot()->Swap(snapshot);
  delta->set_base(*name_);
  return true;
}

absl::StatusOr<gmt::Snapshot> SnapshotBase::Apply(gmt::SnapshotDelta delta) const {
  if (name_ != delta.base()) {
    return absl::DataLossError(absl::StrCat("the snapshot ", delta.snapshot().name(),
                                            " is based on ", delta.base(), ", which is lost"));
  }
  const gmt::Live& added = delta.snapshot().live();
  if (added.count() > kMaxRows || delta.changed_size() != delta.changed_roles_size()) {
    return Contradicts(delta);
  }
  gmt::Live live;
  LiveAppender rows(&live);
  LiveCursor then(&live_);
  RolesNow roles(delta);
  uint64_t ended = 0;
  for (int i = 0; i < delta.ended_size(); ++i) {
    ended += delta.ended(i);
    if (ended >= live_.count() || ended < then.row()) return Contradicts(delta);
    for (; then.row() < ended; then.Next()) rows.Append(then, roles.Of(then));
    then.Next();
  }
  for (; !then.at_end(); then.Next()) rows.Append(then, roles.Of(then));
  if (!roles.at_end()) return Contradicts(delta);
  for (LiveCursor now(&added); !now.at_end(); now.Next()) rows.Append(now);
  rows.Finish();
  delta.mutable_snapshot()->mutable_live()->Swap(&live);
  return std::move(*delta.mutable_snapshot());
}

}  // namespace gmt::format
