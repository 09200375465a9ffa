#include "format/recording_copy.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/chunk_codec.h"
#include "format/frame_stream.h"
#include "format/framing.h"

namespace gmt::format {
namespace {

constexpr int kZstdLevel = 3;

absl::Status NotComplete(absl::string_view path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is cut or damaged; repair a copy first with: gpumemtrace repair ", path, " OUT.gmt"));
}

class Copier {
 public:
  Copier(absl::string_view path, std::unique_ptr<Sink> sink, const Additions& additions,
         const Strip& strip)
      : path_(path), sink_(std::move(sink)), additions_(additions), strip_(strip) {}

  absl::Status Take(const FrameRecord& record) {
    switch (record.kind) {
      case FrameRecord::Kind::kMagic:
        return BeginSegment(record.offset);
      case FrameRecord::Kind::kHeader:
        return Append(Frame(FrameTag::kHeader, record.body));
      case FrameRecord::Kind::kChunk:
        return TakeChunk(record.body);
      case FrameRecord::Kind::kIndex:
        return TakeIndex(record);
      case FrameRecord::Kind::kFooter:
        return EndSegment(record.index_offset);
      case FrameRecord::Kind::kDamage:
        return NotComplete(path_);
      case FrameRecord::Kind::kEnd:
        return record.bytes > 0 || in_segment_ ? NotComplete(path_) : sink_->Sync();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Append(const std::string& bytes) {
    segment_bytes_ += bytes.size();
    return sink_->Append({bytes.data(), bytes.size()});
  }

  absl::Status BeginSegment(uint64_t offset) {
    if (in_segment_) return NotComplete(path_);
    in_segment_ = true;
    source_begin_ = offset;
    segment_bytes_ = 0;
    next_seq_ = 0;
    last_t_ns_ = 0;
    chunk_offsets_.clear();
    index_.reset();
    definitions_.BeginSegment();
    return Append(std::string(kFileMagic));
  }

  absl::Status TakeChunk(std::string_view bytes) {
    Chunk chunk;
    if (!in_segment_ || index_ != nullptr || !ParseBytes(bytes, &chunk) ||
        chunk.seq() != next_seq_) {
      return NotComplete(path_);
    }
    ++next_seq_;
    last_t_ns_ = chunk.last_t_ns();
    chunk_offsets_.push_back(segment_bytes_);
    absl::Status status = Learn(chunk);
    if (status.ok() && strip_.any() &&
        (chunk.kind() == Chunk::DEFINITIONS || chunk.kind() == Chunk::FACTS))
      return AppendStripped(&chunk);
    return status.ok() ? Append(Frame(FrameTag::kChunk, bytes)) : status;
  }

  absl::Status AppendStripped(Chunk* chunk) {
    gmt::Body body;
    if (!UnpackBody(*chunk, &body).ok()) return NotComplete(path_);
    StripBody(&strip_, &body);
    chunk->clear_crc32c();
    chunk->clear_body();
    chunk->clear_payload();
    absl::Status status = packer_.Pack(&body, kZstdLevel, chunk);
    return status.ok() ? Append(Frame(FrameTag::kChunk, chunk->SerializeAsString())) : status;
  }

  absl::Status Learn(const Chunk& chunk) {
    if (chunk.kind() != Chunk::DEFINITIONS && chunk.kind() != Chunk::SYMBOLS) {
      return absl::OkStatus();
    }
    gmt::Body body;
    if (!UnpackBody(chunk, &body).ok()) return NotComplete(path_);
    return chunk.kind() == Chunk::DEFINITIONS ? definitions_.Add(body.definitions())
                                              : definitions_.Add(body.symbols());
  }

  absl::Status TakeIndex(const FrameRecord& record) {
    index_ = std::make_unique<gmt::Index>();
    index_offset_ = record.offset - source_begin_;
    return ParseBytes(record.body, index_.get()) ? absl::OkStatus() : NotComplete(path_);
  }

  absl::Status EndSegment(uint64_t index_offset_of_footer) {
    if (index_ == nullptr || index_offset_of_footer != index_offset_) return NotComplete(path_);
    auto bodies = additions_(definitions_);
    if (!bodies.ok()) return bodies.status();
    for (gmt::Body& body : *bodies) {
      absl::Status status = Put(&body);
      if (!status.ok()) return status;
    }
    in_segment_ = false;
    if (static_cast<size_t>(index_->entry_size()) != chunk_offsets_.size())
      return NotComplete(path_);
    for (int i = 0; i < index_->entry_size(); ++i)
      index_->mutable_entry(i)->set_offset(chunk_offsets_[static_cast<size_t>(i)]);
    index_->clear_crc32c();
    const uint64_t index_offset = segment_bytes_;
    return Append(Frame(FrameTag::kIndex, index_->SerializeAsString()) + Footer(index_offset));
  }

  absl::Status Put(gmt::Body* body) {
    Chunk chunk;
    chunk.set_sync(SyncWord(kChunkSync));
    chunk.set_kind(body->has_symbols() ? Chunk::SYMBOLS : Chunk::DEFINITIONS);
    chunk.set_seq(next_seq_++);
    chunk.set_first_t_ns(last_t_ns_);
    chunk.set_last_t_ns(last_t_ns_);
    absl::Status status = packer_.Pack(body, kZstdLevel, &chunk);
    if (!status.ok()) return status;
    Index::Entry* entry = index_->add_entry();
    entry->set_kind(chunk.kind());
    chunk_offsets_.push_back(segment_bytes_);
    entry->set_first_t_ns(last_t_ns_);
    entry->set_last_t_ns(last_t_ns_);
    return Append(Frame(FrameTag::kChunk, chunk.SerializeAsString()));
  }

  const absl::string_view path_;
  const std::unique_ptr<Sink> sink_;
  const Additions& additions_;
  Strip strip_;
  ChunkPacker packer_{Chunk::ZSTD};
  Definitions definitions_;
  std::unique_ptr<gmt::Index> index_;  // of the segment, after it was read
  // In the source: the offset of the segment, and the offset of its index relative to it.
  uint64_t source_begin_ = 0, index_offset_ = 0;
  bool in_segment_ = false;
  uint64_t segment_bytes_ = 0;
  std::vector<uint64_t> chunk_offsets_;  // in the copy's segment
  uint32_t next_seq_ = 0;
  int64_t last_t_ns_ = 0;
};

absl::Status Copy(ByteSource& source, absl::string_view path, std::unique_ptr<Sink> sink,
                  const Additions& additions, const Strip& strip) {
  FrameStream stream(&source);
  Copier copier(path, std::move(sink), additions, strip);
  for (;;) {
    const absl::StatusOr<FrameRecord> record = stream.Next();
    if (!record.ok()) return record.status();
    absl::Status status = copier.Take(*record);
    if (!status.ok() || record->kind == FrameRecord::Kind::kEnd) return status;
  }
}

}  // namespace

absl::Status CopyRecording(ByteSource& source, absl::string_view path, std::unique_ptr<Sink> sink,
                           const Additions& additions) {
  return Copy(source, path, std::move(sink), additions, Strip());
}

absl::Status CopyStripped(ByteSource& source, absl::string_view path, std::unique_ptr<Sink> sink,
                          const Strip& strip) {
  const Additions nothing = [](const Definitions&) { return std::vector<gmt::Body>(); };
  return Copy(source, path, std::move(sink), nothing, strip);
}

}  // namespace gmt::format
