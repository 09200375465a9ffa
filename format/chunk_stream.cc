#include "format/chunk_stream.h"

#include <utility>

#include "format/chunk_codec.h"
#include "format/framing.h"
#include "format/kept_rows.h"

namespace gmt::format {
absl::Status ChunkStream::Next(std::vector<Delivery>* deliveries) {
  out_ = deliveries;
  SkipUnneeded();
  const absl::StatusOr<FrameRecord> record = stream_.Next();
  if (!record.ok()) return record.status();
  Take(*record);
  return absl::OkStatus();
}

void ChunkStream::SkipUnneeded() {
  for (; next_skipped_ < plan_.skipped.size(); ++next_skipped_) {
    const SkippedChunk& chunk = plan_.skipped[next_skipped_];
    if (chunk.offset != stream_.position()) return;
    stream_.SkipTo(chunk.offset + chunk.bytes);
    segment_.chunk_offsets.push_back(chunk.offset - segment_.offset);
    segment_.next_seq = chunk.seq + 1;
    segment_.last_t_ns = chunk.last_t_ns;
  }
}

void ChunkStream::Recycle(EventBatch batch) {
  if (batch.events.capacity() > spare_.events.capacity()) spare_ = std::move(batch);
}

void ChunkStream::Take(const FrameRecord& record) {
  switch (record.kind) {
    case FrameRecord::Kind::kMagic:
      return BeginSegment(record.offset);
    case FrameRecord::Kind::kHeader:
      return TakeHeader(record);
    case FrameRecord::Kind::kChunk:
      return TakeChunk(record);
    case FrameRecord::Kind::kIndex:
      return TakeIndex(record);
    case FrameRecord::Kind::kFooter:
      return TakeFooter(record);
    case FrameRecord::Kind::kDamage:
      return NoteDamage(record.offset, record.bytes, record.what);
    case FrameRecord::Kind::kEnd: {
      const bool closed = segments_ > 0 && all_closed_ && segment_.closed && record.bytes == 0;
      if (tail_ == Tail::kFinal) EndSegment();
      out_->emplace_back(RecordingEnds{closed});
    }
  }
}

void ChunkStream::BeginSegment(uint64_t offset) {
  EndSegment();
  ++segments_;
  out_->emplace_back(SegmentBegins{});
  segment_ = Segment();
  segment_.offset = offset;
}

void ChunkStream::EndSegment() {
  if (segments_ > 0) all_closed_ = all_closed_ && segment_.closed;
  EndGap(segment_.last_t_ns);
}

void ChunkStream::TakeHeader(const FrameRecord& record) {
  Header header;
  if (!ParseBytes(record.body, &header)) return NoteDamage(record.offset, record.bytes, "header");
  out_->push_back(std::move(header));
}

void ChunkStream::TakeChunk(const FrameRecord& record) {
  Chunk chunk;
  if (!ParseBytes(record.body, &chunk)) return NoteDamage(record.offset, record.bytes, "chunk");
  TakeSequence(chunk, record);
  segment_.chunk_offsets.push_back(record.offset - segment_.offset);
  auto read = std::make_unique<ChunkRead>();
  read->offset = record.offset;
  read->bytes = record.bytes;
  if (events_as_ == EventsAs::kCounts && chunk.kind() == Chunk::EVENTS) {
    TakeCounts(chunk, read.get());
  } else if (chunk.kind() == Chunk::CHECKPOINT && record.offset != plan_.checkpoint) {
    // It repeats what is known from the events before it.
  } else if (absl::Status unpacked = UnpackBody(chunk, &read->body); !unpacked.ok()) {
    return NoteDamage(record.offset, record.bytes, std::string(unpacked.message()));
  } else if (read->body.has_events()) {
    TakeEvents(chunk, read.get());
  } else if (read->body.has_checkpoint()) {
    const absl::Status restored = Restore(read->body.checkpoint(), &segment_.history);
    if (!restored.ok())
      return NoteDamage(record.offset, record.bytes, std::string(restored.message()));
  }
  out_->push_back(std::move(read));
}

void ChunkStream::TakeCounts(const Chunk& chunk, ChunkRead* read) {
  read->counts = DecodeCounts(chunk.counts());
  read->last_t_ns = segment_.last_t_ns = chunk.last_t_ns();
  if (read->counts.empty()) out_->emplace_back(EventsNeeded{});
}

// A missing number means a missing chunk. A repeated number begins a segment whose header was lost.
void ChunkStream::TakeSequence(const Chunk& chunk, const FrameRecord& record) {
  if (chunk.seq() < segment_.next_seq) BeginSegment(record.offset);
  if (chunk.seq() > segment_.next_seq && !gap_) NoteDamage(record.offset, 0, "missing chunk");
  segment_.next_seq = chunk.seq() + 1;
  EndGap(chunk.first_t_ns());
}

void ChunkStream::TakeEvents(const Chunk& chunk, ChunkRead* read) {
  read->batch = std::exchange(spare_, {});
  read->batch.Clear();
  const absl::Status decoded = DecodeEvents(read->body.events(), chunk.first_t_ns(), returns_,
                                            &segment_.history, &read->batch);
  if (!decoded.ok()) {
    read->events_damage = std::string(decoded.message());
    is_damaged_ = gap_ = true;
  }
  read->body.clear_events();
  segment_.last_t_ns = chunk.last_t_ns();
}

void ChunkStream::TakeIndex(const FrameRecord& record) {
  gmt::Index index;
  segment_.index_offset = record.offset - segment_.offset;
  segment_.index_is_right = ParseBytes(record.body, &index) &&
                            index.entry_size() == static_cast<int>(segment_.chunk_offsets.size());
  for (int at = 0; segment_.index_is_right && at < index.entry_size(); ++at) {
    segment_.index_is_right =
        index.entry(at).offset() == segment_.chunk_offsets[static_cast<size_t>(at)];
  }
  // After damage an index lists more chunks than were found; that is not additional damage.
  if (!segment_.index_is_right && !is_damaged_) NoteDamage(record.offset, record.bytes, "index");
}

void ChunkStream::TakeFooter(const FrameRecord& record) {
  segment_.closed = segment_.index_is_right && record.index_offset == segment_.index_offset;
  if (!segment_.closed && !is_damaged_) NoteDamage(record.offset, record.bytes, "footer");
}

void ChunkStream::NoteDamage(uint64_t offset, uint64_t bytes, std::string what) {
  is_damaged_ = gap_ = true;
  if (events_as_ == EventsAs::kCounts) out_->emplace_back(EventsNeeded{});
  out_->emplace_back(DamageFound{offset, bytes, std::move(what)});
}

void ChunkStream::EndGap(int64_t to_t_ns) {
  out_->emplace_back(GapEnds{segment_.last_t_ns, to_t_ns});
}

}  // namespace gmt::format
