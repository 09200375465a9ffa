#include "format/reading_plan.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "format/chunk_codec.h"
#include "format/framing.h"
#include "format/parts.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

// Enough for a frame's prefix and a chunk's fields before its content.
constexpr uint64_t kChunkHeadBytes = 96;

struct ChunkHead {
  SkippedChunk place;
  Chunk::Kind kind = Chunk::KIND_UNSPECIFIED;
  int64_t first_t_ns = 0;
};

// Parses the fields of a chunk that precede its content. Returns false if that is not possible.
bool ParseHead(std::string_view bytes, ChunkHead* head) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  for (bool has_sync = false;;) {
    const uint32_t tag = input.ReadTag();
    if (tag == (Chunk::kSyncFieldNumber << 3 | 1)) {
      uint64_t sync = 0;
      if (!input.ReadLittleEndian64(&sync) || sync != SyncWord(kChunkSync)) return false;
      has_sync = true;
      continue;
    }
    if ((tag & 7) != 0 || tag == 0) return has_sync && tag != 0;
    uint64_t value = 0;
    if (!input.ReadVarint64(&value)) return false;
    switch (tag >> 3) {
      case Chunk::kKindFieldNumber:
        head->kind = static_cast<Chunk::Kind>(value);
        break;
      case Chunk::kSeqFieldNumber:
        head->place.seq = static_cast<uint32_t>(value);
        break;
      case Chunk::kFirstTNsFieldNumber:
        head->first_t_ns = WireFormatLite::ZigZagDecode64(value);
        break;
      case Chunk::kLastTNsFieldNumber:
        head->place.last_t_ns = WireFormatLite::ZigZagDecode64(value);
        break;
      default:
        break;
    }
  }
}

// Walks over the frames of a source without reading their content.
class HeadReader {
 public:
  explicit HeadReader(ByteSource& source) : source_(source) {}

  // Returns the heads of all chunks; nothing if the source is not one undamaged recording.
  absl::StatusOr<std::optional<std::vector<ChunkHead>>> ReadAll() {
    while (position_ < source_.size()) {
      absl::Status status = source_.Read(position_, kChunkHeadBytes, &head_);
      if (!status.ok()) return status;
      const uint64_t before = position_;
      if (status = TakeFrame(); !status.ok()) return status;
      if (is_cut_) break;
      if (position_ == before) return std::nullopt;
    }
    return std::move(chunks_);
  }

 private:
  // Moves to the next frame, or stays if this one is not as it should be.
  absl::Status TakeFrame() {
    if (head_.starts_with(kFileMagic)) {
      position_ += kFileMagic.size();
      return absl::OkStatus();
    }
    if (ParseFooter(std::string_view(head_).substr(0, kFooterBytes)).has_value()) {
      position_ += kFooterBytes;
      return absl::OkStatus();
    }
    const std::optional<FramePrefix> prefix = ParseFramePrefix(head_);
    if (!prefix.has_value() || prefix->length > kMaxFrameBytes || prefix->length < kCrcBytes)
      return absl::OkStatus();
    if (position_ + prefix->total() > source_.size()) {
      is_cut_ = true;
      return absl::OkStatus();
    }
    switch (prefix->tag) {
      case FrameTag::kHeader:
        return TakeHeader(*prefix);
      case FrameTag::kChunk:
        TakeChunk(*prefix);
        return absl::OkStatus();
      case FrameTag::kIndex:
        position_ += prefix->total();
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status TakeHeader(const FramePrefix& prefix) {
    std::string frame;
    if (absl::Status status = source_.Read(position_, prefix.total(), &frame); !status.ok())
      return status;
    const std::optional<std::string_view> body = CheckedBody(prefix, frame);
    Header header;
    if (!body.has_value() || !ParseBytes(*body, &header)) return absl::OkStatus();
    if (header_.has_value() && !IsNextPart(*header_, header)) return absl::OkStatus();
    header_ = std::move(header);
    next_seq_ = 0;
    position_ += prefix.total();
    return absl::OkStatus();
  }

  void TakeChunk(const FramePrefix& prefix) {
    ChunkHead chunk;
    chunk.place.offset = position_;
    chunk.place.bytes = prefix.total();
    if (!ParseHead(std::string_view(head_).substr(prefix.prefix_bytes), &chunk)) return;
    if (!header_.has_value() || chunk.place.seq != next_seq_) return;
    ++next_seq_;
    position_ += prefix.total();
    chunks_.push_back(chunk);
  }

  ByteSource& source_;
  uint64_t position_ = 0;
  std::string head_;
  std::optional<Header> header_;
  uint32_t next_seq_ = 0;
  bool is_cut_ = false;
  std::vector<ChunkHead> chunks_;
};

// Reads a chunk into `frame`, and returns its body; nothing if it is damaged.
absl::StatusOr<std::optional<std::string_view>> ReadBody(ByteSource& source,
                                                         const SkippedChunk& chunk,
                                                         std::string* frame) {
  if (absl::Status status = source.Read(chunk.offset, chunk.bytes, frame); !status.ok())
    return status;
  const std::optional<FramePrefix> prefix = ParseFramePrefix(*frame);
  return prefix.has_value() ? CheckedBody(*prefix, *frame) : std::nullopt;
}

absl::StatusOr<bool> IsUndamaged(ByteSource& source, const SkippedChunk& chunk) {
  std::string frame;
  const auto body = ReadBody(source, chunk, &frame);
  if (!body.ok()) return body.status();
  return body->has_value();
}

// Whether the chunk is about a moment, not about the whole recording.
bool IsOfAMoment(Chunk::Kind kind) {
  return kind == Chunk::EVENTS || kind == Chunk::SNAPSHOT || kind == Chunk::SNAPSHOT_DELTA ||
         kind == Chunk::AGGREGATES || kind == Chunk::CHECKPOINT;
}

// Returns the index behind the last chunk with events.
size_t EventsEnd(const std::vector<ChunkHead>& chunks) {
  size_t end = chunks.size();
  while (end > 0 && chunks[end - 1].kind != Chunk::EVENTS) --end;
  return end;
}

}  // namespace

absl::StatusOr<ReadingPlan> PlanReading(ByteSource& source, const TimeRange& range) {
  const auto heads = HeadReader(source).ReadAll();
  if (!heads.ok()) return heads.status();
  ReadingPlan plan;
  if (!heads->has_value()) return plan;
  const std::vector<ChunkHead>& chunks = **heads;

  std::vector<size_t> before, after;  // the checkpoints before and after the range
  const size_t events_end = EventsEnd(chunks);
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].kind != Chunk::CHECKPOINT) continue;
    if (chunks[i].first_t_ns < range.from_ns && i < events_end) before.push_back(i);
    if (chunks[i].first_t_ns > range.to_ns) after.push_back(i);
  }
  const size_t begin = before.size() < 2 ? 0 : before[before.size() - 2];
  const size_t end = after.size() < 2 ? chunks.size() : after[1];
  if (begin > 0) {
    const absl::StatusOr<bool> undamaged = IsUndamaged(source, chunks[begin].place);
    if (!undamaged.ok()) return undamaged.status();
    if (!*undamaged) return plan;
    plan.checkpoint = chunks[begin].place.offset;
    plan.read.from_ns = chunks[begin].first_t_ns;
  }
  if (end < chunks.size()) plan.read.to_ns = chunks[end].first_t_ns;
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (IsOfAMoment(chunks[i].kind) && (i < begin || i >= end))
      plan.skipped.push_back(chunks[i].place);
  }
  return plan;
}

absl::StatusOr<std::vector<std::shared_ptr<const Aggregates>>> ReadCheckpointSums(
    ByteSource& source) {
  using Sums = std::vector<std::shared_ptr<const Aggregates>>;
  Sums sums;
  const auto heads = HeadReader(source).ReadAll();
  if (!heads.ok()) return heads.status();
  if (!heads->has_value()) return sums;
  bool is_complete = false;
  std::string frame;
  Chunk chunk;
  gmt::Body content;
  for (const ChunkHead& head : **heads) {
    if (head.kind == Chunk::EVENTS) is_complete = false;
    if (head.kind == Chunk::AGGREGATES) return Sums();  // events before it may be missing
    if (head.kind != Chunk::CHECKPOINT) continue;
    const auto body = ReadBody(source, head.place, &frame);
    if (!body.ok()) return body.status();
    const bool is_read =
        body->has_value() && ParseBytes(**body, &chunk) && UnpackBody(chunk, &content).ok();
    if (!is_read) return Sums();
    sums.push_back(std::make_shared<const Aggregates>(content.checkpoint().so_far()));
    is_complete = true;
  }
  if (!is_complete) sums.clear();
  return sums;
}

}  // namespace gmt::format
