#include "format/recording_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "format/byte_source.h"
#include "format/chunk_stream.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/id_shift.h"
#include "format/parts.h"
#include "format/read_ahead.h"

namespace gmt::format {
namespace {

constexpr uint32_t kReaderVersion = 1;
constexpr uint64_t kRecogniseBytes = 1u << 20;
// From here on a thread is worth its start.
constexpr uint64_t kReadAheadBytes = 1u << 22;

template <typename Message>
bool Parse(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

class RecordingReader::Impl {
 public:
  Impl(std::unique_ptr<ByteSource> source, absl::string_view name)
      : source_(std::move(source)), name_(name) {}

  absl::Status Begin();
  absl::Status Read(RecordingVisitor& visitor, Returns returns);

  const Header& header() const { return header_; }
  const Definitions& definitions() const { return definitions_; }
  bool complete() const { return complete_; }
  const std::vector<Damage>& damage() const { return damage_; }
  uint32_t chunks() const { return chunks_; }
  uint64_t bytes() const { return source_->size(); }
  uint64_t bytes_taken() const { return bytes_taken_; }

 private:
  absl::Status CheckLooksLikeOne();
  absl::Status CheckHeader() const;
  // Takes all that `frames`, a ChunkStream or a ReadAhead, delivers.
  template <typename Frames>
  absl::Status TakeAll(Frames& frames);
  absl::Status Take(const SegmentBegins&);
  absl::Status Take(const DamageFound& damage);
  absl::Status Take(const GapEnds& gap);
  absl::Status Take(const Header& header);
  absl::Status Take(const std::unique_ptr<ChunkRead>& read);
  absl::Status Take(const RecordingEnds& end);
  absl::Status TakeEvents(ChunkRead& read);
  void NoteDamage(uint64_t offset, uint64_t bytes, std::string what);

  const std::unique_ptr<ByteSource> source_;
  const std::string name_;
  RecordingVisitor* visitor_ = nullptr;
  bool read_ = false;

  Header header_;       // the first
  Header last_header_;  // of the segment that is read
  Definitions definitions_;
  std::vector<Damage> damage_;
  uint32_t chunks_ = 0;
  uint64_t bytes_taken_ = 0;
  bool ended_ = false;
  bool complete_ = false;
  bool gap_ = false;  // events may be missing
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
  ChunkStream stream(source_.get(), returns);
  if (source_->size() < kReadAheadBytes) return TakeAll(stream);
  ReadAhead ahead(&stream);
  return TakeAll(ahead);
}

template <typename Frames>
absl::Status RecordingReader::Impl::TakeAll(Frames& frames) {
  std::vector<Delivery> deliveries;
  while (!ended_) {
    deliveries.clear();
    absl::Status status = frames.Next(&deliveries);
    for (Delivery& delivery : deliveries) {
      if (!status.ok()) return status;
      status = std::visit([this](const auto& taken) { return Take(taken); }, delivery);
      auto* read = std::get_if<std::unique_ptr<ChunkRead>>(&delivery);
      if (read != nullptr) frames.Recycle(std::move((*read)->batch));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RecordingReader::Impl::Take(const SegmentBegins&) {
  definitions_.BeginSegment();
  return absl::OkStatus();
}

absl::Status RecordingReader::Impl::Take(const Header& header) {
  if (IsNextPart(last_header_, header)) definitions_.ContinueSegment();
  last_header_ = header;
  return visitor_->OnHeader(header);
}

absl::Status RecordingReader::Impl::Take(const DamageFound& damage) {
  NoteDamage(damage.offset, damage.bytes, damage.what);
  return absl::OkStatus();
}

absl::Status RecordingReader::Impl::Take(const GapEnds& ends) {
  if (!std::exchange(gap_, false)) return absl::OkStatus();
  EventBatch batch;
  Event& event = batch.events.emplace_back();
  event.kind = GAP;
  event.present = kHasTime;
  event.t_ns = ends.from_t_ns;
  Gap& gap = batch.gaps.emplace_back();
  gap.set_to_t_ns(ends.to_t_ns);
  gap.set_reason("damage");
  return visitor_->OnEvents(batch);
}

absl::Status RecordingReader::Impl::Take(const std::unique_ptr<ChunkRead>& read) {
  ++chunks_;
  bytes_taken_ = read->offset + read->bytes;
  gmt::Body& body = read->body;
  absl::Status defined = definitions_.Add(body.definitions());
  if (defined.ok()) defined = definitions_.Add(body.symbols());
  if (!defined.ok()) NoteDamage(read->offset, read->bytes, std::string(defined.message()));

  absl::Status status;
  if (body.has_facts()) status = visitor_->OnFacts(body.facts());
  if (status.ok()) status = TakeEvents(*read);
  if (status.ok() && body.has_snapshot()) {
    if (!definitions_.base().none()) ShiftIds(definitions_.base(), body.mutable_snapshot());
    status = visitor_->OnSnapshot(body.snapshot());
  }
  if (status.ok() && body.has_losses()) status = visitor_->OnLosses(body.losses());
  if (status.ok() && body.has_aggregates()) {
    if (!definitions_.base().none()) ShiftIds(definitions_.base(), body.mutable_aggregates());
    status = visitor_->OnAggregates(body.aggregates());
  }
  return status;
}

absl::Status RecordingReader::Impl::TakeEvents(ChunkRead& read) {
  if (!read.events_damage.empty()) NoteDamage(read.offset, read.bytes, read.events_damage);
  if (!definitions_.base().none()) {
    for (Event& event : read.batch.events) ShiftIds(definitions_.base(), &event);
  }
  return read.batch.events.empty() ? absl::OkStatus() : visitor_->OnEvents(read.batch);
}

absl::Status RecordingReader::Impl::Take(const RecordingEnds& end) {
  ended_ = true;
  complete_ = end.closed && damage_.empty();
  return absl::OkStatus();
}

void RecordingReader::Impl::NoteDamage(uint64_t offset, uint64_t bytes, std::string what) {
  damage_.push_back({offset, bytes, chunks_, std::move(what)});
  gap_ = true;
}

// ---- The public class ---------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::Open(absl::string_view path) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenWithParts(path);
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
uint64_t RecordingReader::bytes_taken() const { return impl_->bytes_taken(); }

}  // namespace gmt::format
