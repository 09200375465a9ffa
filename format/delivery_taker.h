// format/delivery_taker.h
//
// DeliveryTaker: the second stage of reading a recording. It consumes the deliveries of a
// ChunkStream: it collects definitions, makes ids unique within the recording, turns damage into
// gap events, and passes everything else to a visitor. Used for a complete file
// (format/recording_reader.h) and for one that is being written (format/tail_reader.h).
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_DELIVERY_TAKER_H_
#define GMT_FORMAT_DELIVERY_TAKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "format/chunk_stream.h"
#include "format/definitions.h"
#include "format/recording_reader.h"
#include "format/snapshot_delta.h"

namespace gmt::format {

class DeliveryTaker {
 public:
  // Passes on the contents of the next frame of `frames`, a ChunkStream or a ReadAhead. Sets
  // `*ended` if that was the end of the available data.
  template <typename Frames>
  absl::Status TakeNext(Frames& frames, RecordingVisitor& visitor, bool* ended);

  // Makes all text that is read from now on safe to print (format/printable.h).
  void MakeStringsPrintable() {
    printable_ = true;
    definitions_.MakeStringsPrintable();
  }
  // Whether the end came because events cannot be counted without reading them.
  bool needs_events() const { return needs_events_; }
  const Definitions& definitions() const { return definitions_; }
  bool complete() const { return complete_; }
  const std::vector<Damage>& damage() const { return damage_; }
  uint32_t chunks() const { return chunks_; }
  uint64_t bytes_taken() const { return bytes_taken_; }
  // Returns how many chunks with frame names have been read.
  uint64_t names_taken() const { return names_taken_; }

 private:
  absl::Status Take(const SegmentBegins&, RecordingVisitor&);
  absl::Status Take(const DamageFound& damage, RecordingVisitor&);
  absl::Status Take(const GapEnds& gap, RecordingVisitor& visitor);
  absl::Status Take(Header& header, RecordingVisitor& visitor);
  absl::Status Take(std::unique_ptr<ChunkRead>& read, RecordingVisitor& visitor);
  absl::Status Take(const RecordingEnds& end, RecordingVisitor&);
  absl::Status Take(const EventsNeeded&, RecordingVisitor&);
  absl::Status TakeEvents(ChunkRead& read, RecordingVisitor& visitor);
  void TakeCounts(ChunkRead& read, RecordingVisitor& visitor);
  absl::Status TakeSnapshot(ChunkRead& read, RecordingVisitor& visitor);
  absl::Status TakeCheckpoint(gmt::Checkpoint& checkpoint, RecordingVisitor& visitor);
  void NoteDamage(uint64_t offset, uint64_t bytes, std::string what);

  Header last_header_;  // of the segment being read
  Definitions definitions_;
  SnapshotBase snapshot_base_;
  std::vector<Damage> damage_;
  std::vector<Delivery> deliveries_;
  uint32_t chunks_ = 0;
  uint64_t bytes_taken_ = 0, names_taken_ = 0;
  bool printable_ = false;
  bool ended_ = false;
  bool needs_events_ = false;
  bool complete_ = false;
  bool gap_ = false;  // events may be missing
};

template <typename Frames>
absl::Status DeliveryTaker::TakeNext(Frames& frames, RecordingVisitor& visitor, bool* ended) {
  deliveries_.clear();
  ended_ = false;
  absl::Status status = frames.Next(&deliveries_);
  for (Delivery& delivery : deliveries_) {
    if (!status.ok() || needs_events_) break;
    status = std::visit([&](auto& taken) { return Take(taken, visitor); }, delivery);
    auto* read = std::get_if<std::unique_ptr<ChunkRead>>(&delivery);
    if (read != nullptr) frames.Recycle(std::move((*read)->batch));
  }
  *ended = ended_;
  return status;
}

}  // namespace gmt::format

#endif  // GMT_FORMAT_DELIVERY_TAKER_H_
