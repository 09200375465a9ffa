#include "format/delivery_taker.h"

#include "format/id_shift.h"
#include "format/parts.h"
#include "format/printable.h"

namespace gmt::format {

absl::Status DeliveryTaker::Take(const SegmentBegins&, RecordingVisitor&) {
  definitions_.BeginSegment();
  snapshot_base_.Clear();
  return absl::OkStatus();
}

absl::Status DeliveryTaker::Take(Header& header, RecordingVisitor& visitor) {
  if (IsNextPart(last_header_, header)) definitions_.ContinueSegment();
  last_header_ = header;
  if (printable_) MakePrintable(&header);
  return visitor.OnHeader(header);
}

absl::Status DeliveryTaker::Take(const DamageFound& damage, RecordingVisitor&) {
  NoteDamage(damage.offset, damage.bytes, damage.what);
  return absl::OkStatus();
}

absl::Status DeliveryTaker::Take(const GapEnds& ends, RecordingVisitor& visitor) {
  if (!std::exchange(gap_, false)) return absl::OkStatus();
  EventBatch batch;
  Event& event = batch.events.emplace_back();
  event.kind = GAP;
  event.present = kHasTime;
  event.t_ns = ends.from_t_ns;
  Gap& gap = batch.gaps.emplace_back();
  gap.set_to_t_ns(ends.to_t_ns);
  gap.set_reason("damage");
  return visitor.OnEvents(batch);
}

absl::Status DeliveryTaker::Take(std::unique_ptr<ChunkRead>& read, RecordingVisitor& visitor) {
  ++chunks_;
  bytes_taken_ = read->offset + read->bytes;
  gmt::Body& body = read->body;
  absl::Status defined = definitions_.Add(body.definitions());
  if (defined.ok()) defined = definitions_.Add(body.symbols());
  if (!defined.ok()) NoteDamage(read->offset, read->bytes, std::string(defined.message()));
  if (body.symbols().count() > 0) ++names_taken_;

  // Definitions have been made printable above. They hold build ids, which are not text.
  if (printable_ && body.has_facts()) MakePrintable(body.mutable_facts());
  if (printable_ && body.has_aggregates()) MakePrintable(body.mutable_aggregates());

  if (!read->counts.empty()) TakeCounts(*read, visitor);
  absl::Status status;
  if (body.has_facts()) status = visitor.OnFacts(body.facts());
  if (status.ok()) status = TakeEvents(*read, visitor);
  if (status.ok()) status = TakeSnapshot(*read, visitor);
  if (status.ok() && body.has_checkpoint())
    status = TakeCheckpoint(*body.mutable_checkpoint(), visitor);
  if (status.ok() && body.has_losses()) status = visitor.OnLosses(body.losses());
  if (status.ok() && body.has_aggregates()) {
    if (!definitions_.base().none()) ShiftIds(definitions_.base(), body.mutable_aggregates());
    status = visitor.OnAggregates(body.aggregates());
  }
  return status;
}

absl::Status DeliveryTaker::TakeEvents(ChunkRead& read, RecordingVisitor& visitor) {
  if (!read.events_damage.empty()) NoteDamage(read.offset, read.bytes, read.events_damage);
  if (!definitions_.base().none()) {
    for (Event& event : read.batch.events) ShiftIds(definitions_.base(), &event);
  }
  if (printable_) MakePrintable(&read.batch);
  return read.batch.events.empty() ? absl::OkStatus() : visitor.OnEvents(read.batch);
}

void DeliveryTaker::TakeCounts(ChunkRead& read, RecordingVisitor& visitor) {
  for (EventCount& row : read.counts) {
    if (row.heap != 0) row.heap += definitions_.base().string;
  }
  if (!visitor.OnEventCounts(read.counts, read.last_t_ns)) needs_events_ = ended_ = true;
}

absl::Status DeliveryTaker::TakeSnapshot(ChunkRead& read, RecordingVisitor& visitor) {
  gmt::Body& body = read.body;
  if (body.has_snapshot()) {
    snapshot_base_.Set(body.snapshot());
  } else if (body.has_snapshot_delta()) {
    auto snapshot = snapshot_base_.Apply(std::move(*body.mutable_snapshot_delta()));
    if (!snapshot.ok()) {  // no event is missing
      damage_.push_back(
          {read.offset, read.bytes, chunks_, std::string(snapshot.status().message())});
      return absl::OkStatus();
    }
    *body.mutable_snapshot() = *std::move(snapshot);
  } else {
    return absl::OkStatus();
  }
  if (!definitions_.base().none()) ShiftIds(definitions_.base(), body.mutable_snapshot());
  if (printable_) MakePrintable(body.mutable_snapshot());
  return visitor.OnSnapshot(body.snapshot());
}

absl::Status DeliveryTaker::TakeCheckpoint(gmt::Checkpoint& checkpoint, RecordingVisitor& visitor) {
  if (!definitions_.base().none()) {
    ShiftIds(definitions_.base(), checkpoint.mutable_held());
    ShiftIds(definitions_.base(), checkpoint.mutable_so_far());
  }
  if (printable_) MakePrintable(&checkpoint);
  return visitor.OnCheckpoint(checkpoint);
}

absl::Status DeliveryTaker::Take(const RecordingEnds& end, RecordingVisitor&) {
  ended_ = true;
  complete_ = end.closed && damage_.empty();
  return absl::OkStatus();
}

absl::Status DeliveryTaker::Take(const EventsNeeded&, RecordingVisitor&) {
  needs_events_ = ended_ = true;
  return absl::OkStatus();
}

void DeliveryTaker::NoteDamage(uint64_t offset, uint64_t bytes, std::string what) {
  damage_.push_back({offset, bytes, chunks_, std::move(what)});
  gap_ = true;
}

}  // namespace gmt::format
