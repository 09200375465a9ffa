// format/chunk_stream.h
//
// ChunkStream: the first stage of reading a recording: frames, checksums, decompression, and
// conversion of columns to events. It needs no definitions and calls no other component, so it can
// run on its own thread ahead of its consumer (format/read_ahead.h). RecordingReader is the second
// stage.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_CHUNK_STREAM_H_
#define GMT_FORMAT_CHUNK_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "format/acquisition_history.h"
#include "format/byte_source.h"
#include "format/event.h"
#include "format/event_columns.h"
#include "format/event_counts.h"
#include "format/frame_stream.h"
#include "format/reading_plan.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Contents of a recording in file order.
struct SegmentBegins {};
struct DamageFound {
  uint64_t offset = 0, bytes = 0;
  std::string what;
};
// The end of the range in which events may be missing since the last damage.
struct GapEnds {
  int64_t from_t_ns = 0, to_t_ns = 0;
};
struct ChunkRead {
  gmt::Body body;  // its events are in the batch
  EventBatch batch;
  // In place of events, if those are only counted.
  std::vector<EventCount> counts;
  int64_t last_t_ns = 0;           // the time of the chunk's latest event
  std::string events_damage;       // why the batch ends before the chunk does; empty if it does not
  uint64_t offset = 0, bytes = 0;  // of the chunk's frame
};
struct RecordingEnds {
  bool closed = false;  // every segment has its index and footer, and nothing follows the last one
};
// Ends the reading of a recording whose events cannot be counted without reading them.
struct EventsNeeded {};
using Delivery = std::variant<SegmentBegins, DamageFound, GapEnds, Header,
                              std::unique_ptr<ChunkRead>, RecordingEnds, EventsNeeded>;

// What is delivered of the events. Counting checks the checksums of their chunks but does not
// unpack them. It ends with EventsNeeded at a chunk without counts, and at damage, which may hide
// the allocations of later frees.
enum class EventsAs { kBatches, kCounts };

class ChunkStream {
 public:
  // `source` must outlive the stream.
  ChunkStream(ByteSource* source, Returns returns, Tail tail = Tail::kFinal,
              EventsAs events_as = EventsAs::kBatches)
      : stream_(source, tail), returns_(returns), tail_(tail), events_as_(events_as) {}
  // A stream that reads only what `plan` does not skip.
  ChunkStream(ByteSource* source, Returns returns, ReadingPlan plan)
      : stream_(source),
        returns_(returns),
        tail_(Tail::kFinal),
        events_as_(EventsAs::kBatches),
        plan_(std::move(plan)) {}

  // Appends the contents of the next frame; RecordingEnds comes last. For a growing source it is
  // the state so far, and the next call continues there. Fails only if reading fails.
  absl::Status Next(std::vector<Delivery>* deliveries);
  // Takes back a batch that the consumer has finished with, to reuse its memory.
  void Recycle(EventBatch batch);

 private:
  // State of the file segment being read.
  struct Segment {
    uint64_t offset = 0;  // of its magic
    uint32_t next_seq = 0;
    int64_t last_t_ns = 0;
    AcquisitionHistory history{AcquisitionHistory::Finds::kByRowOrSlot};
    std::vector<uint64_t> chunk_offsets;  // the offsets that the index must list
    uint64_t index_offset = 0;
    bool index_is_right = false;
    bool closed = false;  // has a valid footer
  };

  void SkipUnneeded();
  void Take(const FrameRecord& record);
  void TakeHeader(const FrameRecord& record);
  void TakeChunk(const FrameRecord& record);
  void TakeSequence(const Chunk& chunk, const FrameRecord& record);
  void TakeEvents(const Chunk& chunk, ChunkRead* read);
  void TakeCounts(const Chunk& chunk, ChunkRead* read);
  void TakeIndex(const FrameRecord& record);
  void TakeFooter(const FrameRecord& record);
  void BeginSegment(uint64_t offset);
  void EndSegment();
  void NoteDamage(uint64_t offset, uint64_t bytes, std::string what);
  void EndGap(int64_t to_t_ns);

  FrameStream stream_;
  const Returns returns_;
  const Tail tail_;
  const EventsAs events_as_;
  const ReadingPlan plan_;
  size_t next_skipped_ = 0;  // index in plan_.skipped
  std::vector<Delivery>* out_ = nullptr;
  Segment segment_;
  uint32_t segments_ = 0;
  bool all_closed_ = true;
  bool is_damaged_ = false;
  bool gap_ = false;  // damaged since the last GapEnds
  EventBatch spare_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_CHUNK_STREAM_H_
