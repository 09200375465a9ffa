#include "format/snapshot_copy.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/frame_stream.h"
#include "format/framing.h"

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
        // Ids of what follows another header are others.
        if (std::exchange(has_header_, true))
          return absl::UnimplementedError("the recording is several in one file");
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
    if (!chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return absl::OkStatus();
    const bool wanted = chunk.kind() == Chunk::DEFINITIONS || chunk.kind() == Chunk::SYMBOLS ||
                        chunk.kind() == Chunk::FACTS || chunk.kind() == Chunk::SNAPSHOT;
    if (!wanted || (chunk.kind() == Chunk::SNAPSHOT && !IsIt(chunk))) return absl::OkStatus();
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

  bool IsIt(const Chunk& chunk) {
    gmt::Body body;
    if (found_ || !UnpackBody(chunk, &body).ok() || body.snapshot().name() != name_) return false;
    found_ = true;
    return true;
  }

  absl::Status Append(const std::string& bytes) {
    written_ += bytes.size();
    return sink_->Append({bytes.data(), bytes.size()});
  }

  const std::string& name_;
  const std::unique_ptr<Sink> sink_;
  gmt::Index index_;
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
