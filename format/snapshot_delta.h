// format/snapshot_delta.h
//
// SnapshotBase: the last complete snapshot of a file segment, against which others are encoded.
//
// Snapshots taken every few seconds repeat nearly everything of the previous one: weights,
// optimizer state, caches. Such a snapshot is written as a delta (gmt.proto, SnapshotDelta): the
// rows of the base that have ended, and the new rows. Rows are in the order of allocation, so a
// single pass finds both, and the rows of the base come first.
//
//   base     a b c d e            delta    ended: b d    new: f g
//   now      a c e f g
//
// The roles of memory (Live.roles) change while it is held: weights are saved for backward in each
// step. A row that differs only in its roles counts as unchanged, and the delta lists its new
// roles.
//
// A delta always refers to a complete snapshot, never to another delta. This bounds the effect of a
// damaged chunk, and any snapshot can be read from two chunks. Live sets of more than kMaxRows rows
// are always written completely, so that neither side keeps more rows than that.
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

  // Makes `whole` the base of the following deltas.
  void Set(const gmt::Snapshot& whole);
  // Removes the base, because a segment begins.
  void Clear() { name_.reset(); }

  // Moves *snapshot into *delta. Returns false and leaves *snapshot unchanged if it has to be
  // written completely because there is no base or most of its rows are new.
  bool Difference(gmt::Snapshot* snapshot, gmt::SnapshotDelta* delta) const;

  // Returns the snapshot that a delta describes. Returns DATA_LOSS if the delta has another base,
  // or refers to rows that the base does not have.
  absl::StatusOr<gmt::Snapshot> Apply(gmt::SnapshotDelta delta) const;

 private:
  std::optional<std::string> name_;
  gmt::Live live_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_SNAPSHOT_DELTA_H_
