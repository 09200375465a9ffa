#include "format/repair.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/acquisition_history.h"
#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/event_columns.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/version.h"

namespace gmt::format {
namespace {

class Mender {
 public:
  explicit Mender(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  absl::Status Take(const FrameRecord& record) {
    switch (record.kind) {
      case FrameRecord::Kind::kMagic:
        return CloseSegment();
      case FrameRecord::Kind::kHeader:
        return OpenSegment(std::string(record.body));
      case FrameRecord::Kind::kChunk:
        return TakeChunk(record);
      case FrameRecord::Kind::kDamage:
        gap_ = true;
        result_.bytes_lost += record.bytes;
        return absl::OkStatus();
      case FrameRecord::Kind::kEnd:
        result_.bytes_lost += record.bytes;
        return CloseSegment();
      case FrameRecord::Kind::kIndex:
      case FrameRecord::Kind::kFooter:
        break;  // made anew
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

  absl::Status OpenSegment(const std::string& header) {
    open_ = true;
    segment_bytes_ = 0;
    next_source_seq_ = next_seq_ = 0;
    index_.Clear();
    index_.set_sync(SyncWord(kIndexSync));
    return Append(std::string(kFileMagic) + Frame(FrameTag::kHeader, header));
  }

  // For chunks whose header was lost.
  absl::Status OpenSegmentWithoutHeader() {
    Header header;
    header.set_format_major(1);
    header.set_tool_version(std::string(ToolVersion()));
    return OpenSegment(header.SerializeAsString());
  }

  absl::Status CloseSegment() {
    if (!open_) return absl::OkStatus();
    absl::Status status = PutGap(last_t_ns_);
    if (!status.ok()) return status;
    open_ = false;
    const uint64_t index_offset = segment_bytes_;
    return Append(Frame(FrameTag::kIndex, index_.SerializeAsString()) + Footer(index_offset));
  }

  absl::Status TakeChunk(const FrameRecord& record) {
    Chunk chunk;
    if (!chunk.ParseFromArray(record.body.data(), static_cast<int>(record.body.size()))) {
      gap_ = true;
      return absl::OkStatus();
    }
    absl::Status status = StartWith(chunk);
    if (!status.ok()) return status;
    next_source_seq_ = chunk.seq() + 1;
    last_t_ns_ = chunk.last_t_ns();
    ++result_.chunks;
    return Put(std::move(chunk));
  }

  absl::Status StartWith(const Chunk& chunk) {
    absl::Status status;
    if (open_ && chunk.seq() < next_source_seq_) status = CloseSegment();
    if (status.ok() && !open_) status = OpenSegmentWithoutHeader();
    gap_ = gap_ || chunk.seq() > next_source_seq_;
    return status.ok() ? PutGap(chunk.first_t_ns()) : status;
  }

  absl::Status PutGap(int64_t to_t_ns) {
    if (!std::exchange(gap_, false)) return absl::OkStatus();
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
    AcquisitionHistory none;
    gmt::Body body;
    *body.mutable_events() = EncodeEvents(batch, last_t_ns_, &none);
    absl::Status status = PackBody(std::move(body), Chunk::NONE, 0, &chunk);
    return status.ok() ? Put(std::move(chunk)) : status;
  }

  absl::Status Put(Chunk chunk) {
    chunk.set_seq(next_seq_++);
    chunk.clear_crc32c();
    Index::Entry* entry = index_.add_entry();
    entry->set_kind(chunk.kind());
    entry->set_offset(segment_bytes_);
    entry->set_first_t_ns(chunk.first_t_ns());
    entry->set_last_t_ns(chunk.last_t_ns());
    return Append(Frame(FrameTag::kChunk, chunk.SerializeAsString()));
  }

  const std::unique_ptr<Sink> sink_;
  Repaired result_;
  gmt::Index index_;
  bool open_ = false;  // a segment is
  bool gap_ = false;   // something is missing before the next chunk
  uint64_t segment_bytes_ = 0;
  uint32_t next_seq_ = 0, next_source_seq_ = 0;
  int64_t last_t_ns_ = 0;
};

}  // namespace

absl::StatusOr<Repaired> RepairRecording(absl::string_view path, std::unique_ptr<Sink> sink) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenFile(path);
  if (!source.ok()) return source.status();
  FrameStream stream(source->get());
  Mender mender(std::move(sink));
  for (;;) {
    const absl::StatusOr<FrameRecord> record = stream.Next();
    if (!record.ok()) return record.status();
    absl::Status status = mender.Take(*record);
    if (!status.ok()) return status;
    if (record->kind == FrameRecord::Kind::kEnd) break;
  }
  if (mender.result().chunks == 0) {
    return absl::DataLossError(absl::StrCat(path, ": there is no whole chunk in it to save"));
  }
  absl::Status status = mender.Sync();
  if (!status.ok()) return status;
  return mender.result();
}

}  // namespace gmt::format
