#include "format/recording_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "format/acquisition_history.h"
#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/event_columns.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/id_shift.h"

namespace gmt::format {
namespace {

constexpr uint32_t kReaderVersion = 1;
constexpr uint64_t kRecogniseBytes = 1u << 20;

template <typename Message>
bool Parse(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// What is kept of one file segment while it is read.
struct Segment {
  uint64_t offset = 0;  // of its magic
  uint32_t next_seq = 0;
  int64_t last_t_ns = 0;
  AcquisitionHistory history;
  std::vector<uint64_t> chunk_offsets;  // what its index must list
  uint64_t index_offset = 0;
  bool index_is_right = false;
  bool closed = false;  // by a right footer
};

}  // namespace

class RecordingReader::Impl {
 public:
  Impl(std::unique_ptr<ByteSource> source, absl::string_view name)
      : source_(std::move(source)), name_(name), stream_(source_.get()) {}

  absl::Status Begin();
  absl::Status Read(RecordingVisitor& visitor, Returns returns);

  const Header& header() const { return header_; }
  const Definitions& definitions() const { return definitions_; }
  bool complete() const { return complete_; }
  const std::vector<Damage>& damage() const { return damage_; }
  uint32_t chunks() const { return chunks_; }
  uint64_t bytes() const { return source_->size(); }

 private:
  absl::Status CheckLooksLikeOne();
  absl::Status CheckHeader() const;
  absl::Status Take(const FrameRecord& record);
  absl::Status TakeHeader(const FrameRecord& record);
  absl::Status TakeChunk(const FrameRecord& record);
  absl::Status TakeSequence(const Chunk& chunk, const FrameRecord& record);
  absl::Status TakeBody(const Chunk& chunk, gmt::Body body, const FrameRecord& record);
  absl::Status TakeEvents(const Chunk& chunk, const gmt::Events& events, const FrameRecord& record);
  void TakeIndex(const FrameRecord& record);
  void TakeFooter(const FrameRecord& record);
  absl::Status EndSegment();
  absl::Status BeginSegment(uint64_t offset);
  void NoteDamage(uint64_t offset, uint64_t bytes, std::string what);
  absl::Status DeliverGap(int64_t to_t_ns);

  const std::unique_ptr<ByteSource> source_;
  const std::string name_;
  FrameStream stream_;
  RecordingVisitor* visitor_ = nullptr;
  Returns returns_ = Returns::kCompleted;
  bool read_ = false;

  Header header_;  // the first
  Definitions definitions_;
  std::vector<Damage> damage_;
  uint32_t chunks_ = 0;
  uint32_t segments_ = 0;
  bool all_closed_ = true;
  bool complete_ = false;
  bool gap_ = false;  // events may be missing since last_t_ns
  Segment segment_;
  EventBatch batch_;
};

// ---- Opening ------------------------------------------------------------------------------------

absl::Status RecordingReader::Impl::CheckLooksLikeOne() {
  std::string head;
  absl::Status status = source_->Read(0, kRecogniseBytes, &head);
  if (!status.ok()) return status;
  if (head.empty())
    return absl::InvalidArgumentError(absl::StrCat(name_, " is empty: nothing was recorded"));
  if (head.find(kChunkSync) != std::string::npos ||
      absl::StartsWith(View(head), View(kFileMagic)) ||
      absl::StartsWith(View(kFileMagic), View(head))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(name_, " is no gpumemtrace recording"));
}

absl::Status RecordingReader::Impl::CheckHeader() const {
  if (header_.min_reader_version() <= kReaderVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, " was recorded by gpumemtrace ", header_.tool_version(),
                   " and needs that release or a later one to be read"));
}

// Looks ahead for the header with a stream of its own; Read() passes it again.
absl::Status RecordingReader::Impl::Begin() {
  absl::Status status = CheckLooksLikeOne();
  if (!status.ok()) return status;
  FrameStream ahead(source_.get());
  for (;;) {
    const absl::StatusOr<FrameRecord> record = ahead.Next();
    if (!record.ok()) return record.status();
    if (record->kind == FrameRecord::Kind::kHeader) {
      if (!Parse(record->body, &header_)) header_.Clear();
      return CheckHeader();
    }
    if (record->kind == FrameRecord::Kind::kChunk)
      return absl::OkStatus();  // the header is damaged
    if (record->kind == FrameRecord::Kind::kEnd) {
      return absl::DataLossError(
          absl::StrCat(name_, " is cut inside its header: nothing was recorded"));
    }
  }
}

// ---- Reading ------------------------------------------------------------------------------------

absl::Status RecordingReader::Impl::Read(RecordingVisitor& visitor, Returns returns) {
  if (std::exchange(read_, true))
    return absl::FailedPreconditionError(absl::StrCat(name_, " was read already"));
  visitor_ = &visitor;
  returns_ = returns;
  for (;;) {
    const absl::StatusOr<FrameRecord> record = stream_.Next();
    if (!record.ok()) return record.status();
    if (record->kind == FrameRecord::Kind::kEnd) {
      absl::Status status = EndSegment();
      complete_ = segments_ > 0 && all_closed_ && damage_.empty() && record->bytes == 0;
      return status;
    }
    absl::Status status = Take(*record);
    if (!status.ok()) return status;
  }
}

absl::Status RecordingReader::Impl::Take(const FrameRecord& record) {
  switch (record.kind) {
    case FrameRecord::Kind::kMagic:
      return BeginSegment(record.offset);
    case FrameRecord::Kind::kHeader:
      return TakeHeader(record);
    case FrameRecord::Kind::kChunk:
      return TakeChunk(record);
    case FrameRecord::Kind::kIndex:
      TakeIndex(record);
      return absl::OkStatus();
    case FrameRecord::Kind::kFooter:
      TakeFooter(record);
      return absl::OkStatus();
    case FrameRecord::Kind::kDamage:
      NoteDamage(record.offset, record.bytes, record.what);
      return absl::OkStatus();
    case FrameRecord::Kind::kEnd:
      break;
  }
  return absl::OkStatus();
}

absl::Status RecordingReader::Impl::BeginSegment(uint64_t offset) {
  absl::Status status = EndSegment();
  if (!status.ok()) return status;
  ++segments_;
  definitions_.BeginSegment();
  segment_ = Segment();
  segment_.offset = offset;
  return absl::OkStatus();
}

absl::Status RecordingReader::Impl::EndSegment() {
  if (segments_ > 0) all_closed_ = all_closed_ && segment_.closed;
  return DeliverGap(segment_.last_t_ns);
}

absl::Status RecordingReader::Impl::TakeHeader(const FrameRecord& record) {
  Header header;
  if (!Parse(record.body, &header)) {
    NoteDamage(record.offset, record.bytes, "header");
    return absl::OkStatus();
  }
  return visitor_->OnHeader(header);
}

absl::Status RecordingReader::Impl::TakeChunk(const FrameRecord& record) {
  Chunk chunk;
  gmt::Body body;
  if (!Parse(record.body, &chunk)) {
    NoteDamage(record.offset, record.bytes, "chunk");
    return absl::OkStatus();
  }
  absl::Status status = TakeSequence(chunk, record);
  if (!status.ok()) return status;
  segment_.chunk_offsets.push_back(record.offset - segment_.offset);
  const absl::Status unpacked = UnpackBody(chunk, &body);
  if (!unpacked.ok()) {
    NoteDamage(record.offset, record.bytes, std::string(unpacked.message()));
    return absl::OkStatus();
  }
  ++chunks_;
  return TakeBody(chunk, std::move(body), record);
}

// A number that is missing is a chunk that is missing. A number that comes again begins a segment
// whose header was lost.
absl::Status RecordingReader::Impl::TakeSequence(const Chunk& chunk, const FrameRecord& record) {
  absl::Status status;
  if (chunk.seq() < segment_.next_seq) status = BeginSegment(record.offset);
  if (chunk.seq() > segment_.next_seq && !gap_) NoteDamage(record.offset, 0, "missing chunk");
  segment_.next_seq = chunk.seq() + 1;
  return status.ok() ? DeliverGap(chunk.first_t_ns()) : status;
}

absl::Status RecordingReader::Impl::TakeBody(const Chunk& chunk, gmt::Body body,
                                             const FrameRecord& record) {
  absl::Status defined = definitions_.Add(body.definitions());
  if (defined.ok()) defined = definitions_.Add(body.symbols());
  if (!defined.ok()) NoteDamage(record.offset, record.bytes, std::string(defined.message()));

  absl::Status status;
  if (body.has_facts()) status = visitor_->OnFacts(body.facts());
  if (status.ok() && body.has_events()) status = TakeEvents(chunk, body.events(), record);
  if (status.ok() && body.has_snapshot()) {
    if (!definitions_.base().none()) ShiftIds(definitions_.base(), body.mutable_snapshot());
    status = visitor_->OnSnapshot(body.snapshot());
  }
  if (status.ok() && body.has_losses()) status = visitor_->OnLosses(body.losses());
  return status;
}

absl::Status RecordingReader::Impl::TakeEvents(const Chunk& chunk, const gmt::Events& events,
                                               const FrameRecord& record) {
  batch_.Clear();
  const absl::Status decoded =
      DecodeEvents(events, chunk.first_t_ns(), returns_, &segment_.history, &batch_);
  if (!decoded.ok()) NoteDamage(record.offset, record.bytes, std::string(decoded.message()));
  segment_.last_t_ns = chunk.last_t_ns();
  if (!definitions_.base().none()) {
    for (Event& event : batch_.events) ShiftIds(definitions_.base(), &event);
  }
  return batch_.events.empty() ? absl::OkStatus() : visitor_->OnEvents(batch_);
}

void RecordingReader::Impl::TakeIndex(const FrameRecord& record) {
  gmt::Index index;
  segment_.index_offset = record.offset - segment_.offset;
  segment_.index_is_right = Parse(record.body, &index) &&
                            index.entry_size() == static_cast<int>(segment_.chunk_offsets.size());
  for (int at = 0; segment_.index_is_right && at < index.entry_size(); ++at) {
    segment_.index_is_right =
        index.entry(at).offset() == segment_.chunk_offsets[static_cast<size_t>(at)];
  }
  // After damage an index lists more than was found; that is no further damage.
  if (!segment_.index_is_right && damage_.empty()) NoteDamage(record.offset, record.bytes, "index");
}

void RecordingReader::Impl::TakeFooter(const FrameRecord& record) {
  segment_.closed = segment_.index_is_right && record.index_offset == segment_.index_offset;
  if (!segment_.closed && damage_.empty()) NoteDamage(record.offset, record.bytes, "footer");
}

void RecordingReader::Impl::NoteDamage(uint64_t offset, uint64_t bytes, std::string what) {
  damage_.push_back({offset, bytes, chunks_, std::move(what)});
  gap_ = true;
}

absl::Status RecordingReader::Impl::DeliverGap(int64_t to_t_ns) {
  if (!std::exchange(gap_, false)) return absl::OkStatus();
  EventBatch batch;
  Event& event = batch.events.emplace_back();
  event.kind = GAP;
  event.present = kHasTime;
  event.t_ns = segment_.last_t_ns;
  Gap& gap = batch.gaps.emplace_back();
  gap.set_to_t_ns(to_t_ns);
  gap.set_reason("damage");
  return visitor_->OnEvents(batch);
}

// ---- The public class ---------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::Open(absl::string_view path) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenFile(path);
  if (!source.ok()) return source.status();
  return FromSource(*std::move(source), path);
}

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::FromBytes(
    std::string bytes, absl::string_view name) {
  return FromSource(BytesInMemory(std::move(bytes)), name);
}

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::FromSource(
    std::unique_ptr<ByteSource> source, absl::string_view name) {
  auto impl = std::make_unique<Impl>(std::move(source), name);
  absl::Status status = impl->Begin();
  if (!status.ok()) return status;
  return std::unique_ptr<RecordingReader>(new RecordingReader(std::move(impl)));
}

RecordingReader::RecordingReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecordingReader::~RecordingReader() = default;

absl::Status RecordingReader::Read(RecordingVisitor& visitor, Returns returns) {
  return impl_->Read(visitor, returns);
}
const Header& RecordingReader::header() const { return impl_->header(); }
const Definitions& RecordingReader::definitions() const { return impl_->definitions(); }
bool RecordingReader::complete() const { return impl_->complete(); }
const std::vector<Damage>& RecordingReader::damage() const { return impl_->damage(); }
uint32_t RecordingReader::chunks() const { return impl_->chunks(); }
uint64_t RecordingReader::bytes() const { return impl_->bytes(); }

}  // namespace gmt::format
