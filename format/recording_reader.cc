#include "format/recording_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "format/byte_source.h"
#include "format/chunk_stream.h"
#include "format/delivery_taker.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/parts.h"
#include "format/printable.h"
#include "format/read_ahead.h"
#include "format/reading_plan.h"

namespace gmt::format {
namespace {

// Minimum size for which a separate thread pays off.
constexpr uint64_t kReadAheadBytes = 1u << 22;

}  // namespace

class RecordingReader::Impl {
 public:
  Impl(std::shared_ptr<ByteSource> source, absl::string_view name)
      : source_(std::move(source)), name_(name) {}

  absl::Status Begin();
  absl::Status Read(RecordingVisitor& visitor, Returns returns);
  absl::Status ReadRange(RecordingVisitor& visitor, const TimeRange& range);
  absl::StatusOr<bool> ReadCounts(RecordingVisitor& visitor);
  void MakeStringsPrintable() {
    taker_.MakeStringsPrintable();
    MakePrintable(&header_);
  }

  const TimeRange& range_read() const { return range_read_; }
  const Header& header() const { return header_; }
  const Definitions& definitions() const { return taker_.definitions(); }
  bool complete() const { return taker_.complete(); }
  const std::vector<Damage>& damage() const { return taker_.damage(); }
  uint32_t chunks() const { return taker_.chunks(); }
  uint64_t bytes() const { return source_->size(); }
  uint64_t bytes_taken() const { return taker_.bytes_taken(); }

 private:
  absl::Status CheckLooksLikeRecording();
  absl::Status CheckHeader() const;
  absl::Status BeginRead();
  // Reads ahead on a thread of its own if the recording is large.
  absl::Status TakeAllAhead(ChunkStream& stream, RecordingVisitor& visitor);
  // Consumes everything that `frames`, a ChunkStream or a ReadAhead, delivers.
  template <typename Frames>
  absl::Status TakeAll(Frames& frames, RecordingVisitor& visitor);

  const std::shared_ptr<ByteSource> source_;
  const std::string name_;
  bool read_ = false;
  TimeRange range_read_;

  Header header_;  // the first
  DeliveryTaker taker_;
};

// ---- Opening ------------------------------------------------------------------------------------

absl::Status RecordingReader::Impl::CheckLooksLikeRecording() {
  std::string head;
  absl::Status status = source_->Read(0, kFileHeadBytes, &head);
  if (!status.ok()) return status;
  if (head.empty())
    return absl::InvalidArgumentError(absl::StrCat(name_, " is empty: nothing was recorded"));
  if (LooksLikeRecording(head)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name_, " is not a gpumemtrace recording"));
}

absl::Status RecordingReader::Impl::CheckHeader() const {
  if (header_.min_reader_version() <= kReaderVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, " was recorded by gpumemtrace ", header_.tool_version(),
                   " and requires that release or a later one to be read"));
}

// Reads ahead to the header with a separate stream; Read() reads it again.
absl::Status RecordingReader::Impl::Begin() {
  absl::Status status = CheckLooksLikeRecording();
  if (!status.ok()) return status;
  FrameStream ahead(source_.get());
  for (;;) {
    const absl::StatusOr<FrameRecord> record = ahead.Next();
    if (!record.ok()) return record.status();
    if (record->kind == FrameRecord::Kind::kHeader) {
      if (!ParseBytes(record->body, &header_)) header_.Clear();
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

absl::Status RecordingReader::Impl::BeginRead() {
  if (!std::exchange(read_, true)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(name_, " has already been read"));
}

absl::StatusOr<bool> RecordingReader::Impl::ReadCounts(RecordingVisitor& visitor) {
  if (absl::Status status = BeginRead(); !status.ok()) return status;
  ChunkStream stream(source_.get(), Returns::kAsRecorded, Tail::kFinal, EventsAs::kCounts);
  if (absl::Status status = TakeAll(stream, visitor); !status.ok()) return status;
  return !taker_.needs_events();
}

absl::Status RecordingReader::Impl::Read(RecordingVisitor& visitor, Returns returns) {
  if (absl::Status status = BeginRead(); !status.ok()) return status;
  ChunkStream stream(source_.get(), returns);
  return TakeAllAhead(stream, visitor);
}

absl::Status RecordingReader::Impl::ReadRange(RecordingVisitor& visitor, const TimeRange& range) {
  if (absl::Status status = BeginRead(); !status.ok()) return status;
  absl::StatusOr<ReadingPlan> plan = PlanReading(*source_, range);
  if (!plan.ok()) return plan.status();
  range_read_ = plan->read;
  ChunkStream stream(source_.get(), Returns::kCompleted, *std::move(plan));
  return TakeAllAhead(stream, visitor);
}

absl::Status RecordingReader::Impl::TakeAllAhead(ChunkStream& stream, RecordingVisitor& visitor) {
  if (source_->size() < kReadAheadBytes) return TakeAll(stream, visitor);
  ReadAhead ahead(&stream);
  return TakeAll(ahead, visitor);
}

template <typename Frames>
absl::Status RecordingReader::Impl::TakeAll(Frames& frames, RecordingVisitor& visitor) {
  bool ended = false;
  while (!ended) {
    if (absl::Status status = taker_.TakeNext(frames, visitor, &ended); !status.ok()) return status;
  }
  return absl::OkStatus();
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
    std::shared_ptr<ByteSource> source, absl::string_view name) {
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
absl::Status RecordingReader::ReadRange(RecordingVisitor& visitor, const TimeRange& range) {
  return impl_->ReadRange(visitor, range);
}
absl::StatusOr<bool> RecordingReader::ReadCounts(RecordingVisitor& visitor) {
  return impl_->ReadCounts(visitor);
}
void RecordingReader::MakeStringsPrintable() { impl_->MakeStringsPrintable(); }
const TimeRange& RecordingReader::range_read() const { return impl_->range_read(); }
const Header& RecordingReader::header() const { return impl_->header(); }
const Definitions& RecordingReader::definitions() const { return impl_->definitions(); }
bool RecordingReader::complete() const { return impl_->complete(); }
const std::vector<Damage>& RecordingReader::damage() const { return impl_->damage(); }
uint32_t RecordingReader::chunks() const { return impl_->chunks(); }
uint64_t RecordingReader::bytes() const { return impl_->bytes(); }
uint64_t RecordingReader::bytes_taken() const { return impl_->bytes_taken(); }

}  // namespace gmt::format
