#include "format/repair.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/acquisition_history.h"
#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/event_encoder.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/snapshot_delta.h"
#include "format/version.h"

namespace gmt::format {
namespace {

class Repairer {
 public:
  explicit Repairer(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  absl::Status Take(const FrameRecord& record) {
    switch (record.kind) {
      case FrameRecord::Kind::kMagic:
        return BeginSource(record.offset);
      case FrameRecord::Kind::kHeader:
        return TakeHeader(record);
      case FrameRecord::Kind::kChunk:
        return TakeChunk(record);
      case FrameRecord::Kind::kDamage:
        Lose(record, has_end_ ? &trailing_ : &gap_);
        return absl::OkStatus();
      case FrameRecord::Kind::kEnd:
        return TakeEnd(record);
      case FrameRecord::Kind::kFooter:
        TakeFooter(record);
        break;  // rebuilt
      case FrameRecord::Kind::kIndex:
        index_offset_ = record.offset - source_begin_;
        break;  // rebuilt
    }
    return absl::OkStatus();
  }

  absl::Status Sync() { return sink_->Sync(); }
  const Repaired& result() const { return result_; }

 private:
  absl::Status Append(const std::string& bytes) {
    segment_bytes_ += bytes.size();
    return sink_->Append({bytes.data(), bytes.size()});
  }

  static void Lose(const FrameRecord& record, std::optional<RepairLoss>* loss) {
    if (!loss->has_value()) {
      loss->emplace();
      (*loss)->offset = record.offset;
      (*loss)->what = record.what;
    }
    (*loss)->bytes += record.bytes;
  }

  absl::Status BeginSource(uint64_t offset) {
    absl::Status status = CloseSegment();
    source_begin_ = offset;
    return status;
  }

  // A footer states where its index begins. Damage that begins there affected only the index.
  void TakeFooter(const FrameRecord& record) {
    has_end_ = index_offset_ == record.index_offset;
    if (!gap_.has_value() || gap_->offset - source_begin_ != record.index_offset) return;
    gap_.reset();
    has_end_ = true;
    ++result_.ends_made;
  }

  // Data after the footer that is not a recording was never part of one.
  absl::Status TakeEnd(const FrameRecord& record) {
    if (trailing_.has_value()) result_.bytes_behind += trailing_->bytes;
    if (has_end_) {
      result_.bytes_behind += record.bytes;
    } else if (record.bytes > 0) {
      RepairLoss cut;
      cut.offset = record.offset;
      cut.bytes = record.bytes;
      cut.what = "cut";
      cut.from_t_ns = cut.to_t_ns = last_t_ns_;
      Note(cut);
    }
    return CloseSegment();
  }

  void Note(const RepairLoss& loss) {
    constexpr size_t kMaxNoted = 1000;
    result_.bytes_lost += loss.bytes;
    if (result_.lost.size() < kMaxNoted) result_.lost.push_back(loss);
  }

  absl::Status TakeHeader(const FrameRecord& record) {
    Header header;
    return ParseBytes(record.body, &header) ? OpenSegment(std::move(header))
                                            : OpenSegmentWithoutHeader();
  }

  absl::Status OpenSegment(Header header) {
    open_ = true;
    index_offset_.reset();
    has_end_ = false;
    last_t_ns_ = 0;
    ++result_.segments;
    segment_bytes_ = 0;
    next_source_seq_ = next_seq_ = 0;
    base_.Clear();
    index_.Clear();
    index_.set_sync(SyncWord(kIndexSync));
    // The chunks of gaps require it.
    header.set_min_reader_version(std::max(header.min_reader_version(), kReaderVersion));
    header.clear_crc32c();
    return Append(std::string(kFileMagic) + Frame(FrameTag::kHeader, header.SerializeAsString()));
  }

  // Opens a segment for chunks whose header was lost.
  absl::Status OpenSegmentWithoutHeader() {
    ++result_.headers_made;
    Header header;
    header.set_format_major(1);
    header.set_tool_version(std::string(ToolVersion()));
    return OpenSegment(std::move(header));
  }

  absl::Status CloseSegment() {
    if (!open_) return absl::OkStatus();
    absl::Status status = PutGap(last_t_ns_);
    if (!status.ok()) return status;
    open_ = false;
    source_begin_ = ~uint64_t{0};
    if (!has_end_) ++result_.ends_made;
    const uint64_t index_offset = segment_bytes_;
    return Append(Frame(FrameTag::kIndex, index_.SerializeAsString()) + Footer(index_offset));
  }

  absl::Status TakeChunk(const FrameRecord& record) {
    Chunk chunk;
    gmt::Body body;
    // A chunk that is intact but cannot be unpacked was written that way; no reader could use it.
    if (!ParseBytes(record.body, &chunk) || !UnpackBody(chunk, &body).ok()) {
      Lose(record, &gap_);
      gap_->what = "its content";
      return absl::OkStatus();
    }
    absl::Status status = StartWith(chunk, record.offset);
    if (!status.ok()) return status;
    next_source_seq_ = chunk.seq() + 1;
    last_t_ns_ = chunk.last_t_ns();
    if (body.has_snapshot()) base_.Set(body.snapshot());
    if (body.has_snapshot_delta() && !base_.Apply(body.snapshot_delta()).ok()) {
      NoteLostSnapshot(record);
      return absl::OkStatus();
    }
    result_.events += body.events().count();
    ++result_.chunks;
    return Put(std::move(chunk), body);
  }

  // Its base was lost.
  void NoteLostSnapshot(const FrameRecord& record) {
    RepairLoss loss;
    loss.offset = record.offset;
    loss.bytes = record.bytes;
    loss.what = "a snapshot without its base";
    loss.from_t_ns = loss.to_t_ns = last_t_ns_;
    Note(loss);
  }

  absl::Status StartWith(const Chunk& chunk, uint64_t offset) {
    absl::Status status;
    if (open_ && chunk.seq() < next_source_seq_) status = CloseSegment();
    if (status.ok() && !open_) status = OpenSegmentWithoutHeader();
    if (trailing_.has_value()) gap_ = std::exchange(trailing_, std::nullopt);
    if (!gap_.has_value() && chunk.seq() > next_source_seq_) {
      gap_.emplace();
      gap_->offset = offset;
      gap_->what = "missing chunks";
    }
    index_offset_.reset();
    has_end_ = false;
    return status.ok() ? PutGap(chunk.first_t_ns()) : status;
  }

  absl::Status PutGap(int64_t to_t_ns) {
    if (!gap_.has_value()) return absl::OkStatus();
    gap_->from_t_ns = last_t_ns_;
    gap_->to_t_ns = to_t_ns;
    Note(*std::exchange(gap_, std::nullopt));
    ++result_.gaps;
    EventBatch batch;
    Event& event = batch.events.emplace_back();
    event.kind = GAP;
    event.present = kHasTime;
    event.t_ns = last_t_ns_;
    Gap& gap = batch.gaps.emplace_back();
    gap.set_to_t_ns(to_t_ns);
    gap.set_reason("damage");
    Chunk chunk;
    chunk.set_sync(SyncWord(kChunkSync));
    chunk.set_kind(Chunk::EVENTS);
    chunk.set_first_t_ns(last_t_ns_);
    chunk.set_last_t_ns(last_t_ns_);
    // It has no counts: allocations may be missing to which later frees refer, so counting would
    // not give what the events do.
    AcquisitionHistory none;
    gmt::Body body;
    *body.mutable_events() = EncodeEvents(batch, last_t_ns_, &none);
    gmt::Body packed = body;
    absl::Status status = ChunkPacker(Chunk::NONE).Pack(&packed, 0, &chunk);
    return status.ok() ? Put(std::move(chunk), body) : status;
  }

  absl::Status Put(Chunk chunk, const gmt::Body& body) {
    chunk.set_seq(next_seq_++);
    chunk.clear_crc32c();
    Index::Entry* entry = index_.add_entry();
    entry->set_kind(chunk.kind());
    entry->set_offset(segment_bytes_);
    entry->set_first_t_ns(chunk.first_t_ns());
    entry->set_last_t_ns(chunk.last_t_ns());
    if (body.has_events()) entry->set_events(body.events().count());
    if (body.has_snapshot()) entry->set_snapshot(body.snapshot().name());
    if (body.has_snapshot_delta()) entry->set_snapshot(body.snapshot_delta().snapshot().name());
    return Append(Frame(FrameTag::kChunk, chunk.SerializeAsString()));
  }

  const std::unique_ptr<Sink> sink_;
  Repaired result_;
  gmt::Index index_;
  SnapshotBase base_;
  bool open_ = false;  // a segment is
  // In the source segment: its offset, the relative offset of its index, whether it has a matching
  // footer.
  uint64_t source_begin_ = ~uint64_t{0};
  std::optional<uint64_t> index_offset_;
  bool has_end_ = false;
  std::optional<RepairLoss> gap_;  // data missing before the next chunk
  // Data after a footer. If chunks follow, it is the remains of another recording.
  std::optional<RepairLoss> trailing_;
  uint64_t segment_bytes_ = 0;
  uint32_t next_seq_ = 0, next_source_seq_ = 0;
  int64_t last_t_ns_ = 0;
};

absl::StatusOr<Repaired> Repair(ByteSource* source, absl::string_view name,
                                std::unique_ptr<Sink> sink) {
  FrameStream stream(source);
  Repairer repairer(std::move(sink));
  for (;;) {
    const absl::StatusOr<FrameRecord> record = stream.Next();
    if (!record.ok()) return record.status();
    absl::Status status = repairer.Take(*record);
    if (!status.ok()) return status;
    if (record->kind == FrameRecord::Kind::kEnd) break;
  }
  if (repairer.result().chunks == 0) {
    return absl::DataLossError(absl::StrCat(name, ": there is no intact chunk to recover"));
  }
  absl::Status status = repairer.Sync();
  if (!status.ok()) return status;
  return repairer.result();
}

}  // namespace

absl::StatusOr<Repaired> RepairRecording(absl::string_view path, std::unique_ptr<Sink> sink) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenFile(path);
  if (!source.ok()) return source.status();
  return Repair(source->get(), path, std::move(sink));
}

absl::StatusOr<Repaired> RepairBytes(std::string bytes, absl::string_view name,
                                     std::unique_ptr<Sink> sink) {
  return Repair(BytesInMemory(std::move(bytes)).get(), name, std::move(sink));
}

}  // namespace gmt::format
