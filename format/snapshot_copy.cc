#include "format/snapshot_copy.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/snapshot_delta.h"

namespace gmt::format {
namespace {

class Extractor {
 public:
  Extractor(const std::string& name, std::unique_ptr<Sink> sink)
      : name_(name), sink_(std::move(sink)) {}

  absl::Status Take(const FrameRecord& record) {
    switch (record.kind) {
      case FrameRecord::Kind::kMagic:
        return written_ == 0 ? Append(std::string(kFileMagic)) : absl::OkStatus();
      case FrameRecord::Kind::kHeader:
        // Ids after another header are independent of earlier ones.
        if (std::exchange(has_header_, true))
          return absl::UnimplementedError("the file contains several recordings");
        return Append(Frame(FrameTag::kHeader, record.body));
      case FrameRecord::Kind::kChunk:
        return TakeChunk(record.body);
      default:
        return absl::OkStatus();
    }
  }
  bool found() const { return found_; }

  absl::Status Finish() {
    index_.set_sync(SyncWord(kIndexSync));
    const uint64_t index_offset = written_;
    absl::Status status =
        Append(Frame(FrameTag::kIndex, index_.SerializeAsString()) + Footer(index_offset));
    return status.ok() ? sink_->Sync() : status;
  }

 private:
  absl::Status TakeChunk(std::string_view bytes) {
    Chunk chunk;
    if (!ParseBytes(bytes, &chunk)) return absl::OkStatus();
    switch (chunk.kind()) {
      case Chunk::DEFINITIONS:
      case Chunk::SYMBOLS:
      case Chunk::FACTS:
        return Put(std::move(chunk));
      case Chunk::SNAPSHOT:
      case Chunk::SNAPSHOT_DELTA:
        return TakeSnapshot(std::move(chunk));
      default:
        return absl::OkStatus();
    }
  }

  absl::Status TakeSnapshot(Chunk chunk) {
    gmt::Body body;
    if (found_ || !UnpackBody(chunk, &body).ok()) return absl::OkStatus();
    if (body.has_snapshot()) {
      base_.Set(body.snapshot());
      found_ = body.snapshot().name() == name_;
      return found_ ? Put(std::move(chunk)) : absl::OkStatus();
    }
    if (body.snapshot_delta().snapshot().name() != name_) return absl::OkStatus();
    auto whole = base_.Apply(std::move(*body.mutable_snapshot_delta()));
    if (!whole.ok()) return whole.status();
    found_ = true;
    gmt::Body unpacked;
    *unpacked.mutable_snapshot() = *std::move(whole);
    chunk.set_kind(Chunk::SNAPSHOT);
    absl::Status status =
        ChunkPacker(chunk.codec()).Pack(&unpacked, WriterOptions().zstd_level, &chunk);
    return status.ok() ? Put(std::move(chunk)) : status;
  }

  absl::Status Put(Chunk chunk) {
    chunk.set_seq(next_seq_++);
    chunk.clear_crc32c();
    Index::Entry* entry = index_.add_entry();
    entry->set_kind(chunk.kind());
    entry->set_offset(written_);
    entry->set_first_t_ns(chunk.first_t_ns());
    entry->set_last_t_ns(chunk.last_t_ns());
    if (chunk.kind() == Chunk::SNAPSHOT) entry->set_snapshot(name_);
    return Append(Frame(FrameTag::kChunk, chunk.SerializeAsString()));
  }

  absl::Status Append(const std::string& bytes) {
    written_ += bytes.size();
    return sink_->Append({bytes.data(), bytes.size()});
  }

  const std::string& name_;
  const std::unique_ptr<Sink> sink_;
  gmt::Index index_;
  SnapshotBase base_;
  bool has_header_ = false, found_ = false;
  uint64_t written_ = 0;
  uint32_t next_seq_ = 0;
};

}  // namespace

absl::Status CopySnapshot(absl::string_view path, const std::string& name,
                          std::unique_ptr<Sink> sink) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenFile(path);
  if (!source.ok()) return source.status();
  FrameStream stream(source->get());
  Extractor extractor(name, std::move(sink));
  for (;;) {
    const absl::StatusOr<FrameRecord> record = stream.Next();
    if (!record.ok()) return record.status();
    if (record->kind == FrameRecord::Kind::kEnd) break;
    if (absl::Status status = extractor.Take(*record); !status.ok()) return status;
  }
  if (!extractor.found()) return absl::NotFoundError(absl::StrCat(path, " has no snapshot ", name));
  return extractor.Finish();
}

}  // namespace gmt::format
