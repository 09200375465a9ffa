// format/snapshot_delta.h
//
// SnapshotBase: the last whole snapshot of a file segment, and what others differ from it in.
//
// Snapshots that are taken every few seconds repeat nearly all of the one before: weights, optimizer
// state, caches. Such a one is written as a delta (gmt.proto, SnapshotDelta): the rows of the base
// that have ended, and those that are new. Rows stand in the order of allocation, so that both are
// found in one walk and the rows of the base come first.
//
//   base     a b c d e            delta    ended: b d    new: f g
//   now      a c e f g
//
// What memory is for (Live.roles) changes while it is held: weights are saved for backward in each
// step. A row that differs in nothing else is still the same, and the delta says its roles anew.
//
// A delta is always told against a whole snapshot and never against another delta: what a damaged
// chunk takes with it is bounded, and any one snapshot is read from two chunks. Live sets of more
// than kMaxRows rows are always written whole, so that neither side keeps more than that.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_SNAPSHOT_DELTA_H_
#define GMT_FORMAT_SNAPSHOT_DELTA_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

class SnapshotBase {
 public:
  static constexpr uint32_t kMaxRows = 1u << 18;

  // From here on deltas are told against `whole`.
  void Set(const gmt::Snapshot& whole);
  // There is none: a segment begins.
  void Clear() { name_.reset(); }

  // Moves *snapshot into *delta. False, with *snapshot as it was, where it is to be written whole:
  // there is no base, or most of its rows are new.
  bool Difference(gmt::Snapshot* snapshot, gmt::SnapshotDelta* delta) const;

  // The snapshot that a delta tells of. DATA_LOSS where its base is another one than this, or does
  // not have the rows that it names.
  absl::StatusOr<gmt::Snapshot> Apply(gmt::SnapshotDelta delta) const;

 private:
  std::optional<std::string> name_;
  gmt::Live live_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_SNAPSHOT_DELTA_H_
