#include "format/recording_writer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/chunk_codec.h"
#include "format/definitions_builder.h"
#include "format/event_columns.h"
#include "format/event_encoder.h"
#include "format/framing.h"
#include "format/kept_rows.h"
#include "format/snapshot_delta.h"

namespace gmt::format {
namespace {

// Pending data is written as a chunk of its own when it reaches this size, so that no chunk exceeds
// kMaxBodyBytes.
constexpr uint64_t kPendingBytes = 8u << 20;

// The distance of checkpoints. A reader begins up to two of them early, and reads a million events
// in less than half a second. The second number limits the share of checkpoints in the file.
constexpr uint64_t kEventsBetweenCheckpoints = 500'000;
constexpr uint64_t kEventsForEachHeld = 64;

uint64_t SizeOf(const std::string& detail) { return detail.size(); }
uint64_t SizeOf(const google::protobuf::MessageLite& detail) { return detail.ByteSizeLong(); }

absl::string_view View(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

class RecordingWriter::Impl {
 public:
  Impl(std::unique_ptr<Sink> sink, const WriterOptions& options)
      : sink_(std::move(sink)),
        options_(options),
        packer_(options.compress ? Chunk::ZSTD : Chunk::NONE) {
    options_.chunk_events = std::clamp(options_.chunk_events, 1u, kMaxEventsOfChunk);
    index_.set_sync(SyncWord(kIndexSync));
    if (options_.parts) definitions_.KeepAll();
  }

  absl::Status Begin(const Header& header) {
    Header sealed = header;
    sealed.clear_crc32c();  // it is appended as the last bytes of the frame
    if (sealed.format_major() == 0) sealed.set_format_major(1);
    sealed.set_min_reader_version(std::max(sealed.min_reader_version(), kReaderVersion));
    return Append(std::string(kFileMagic) + Frame(FrameTag::kHeader, sealed.SerializeAsString()));
  }

  DefinitionsBuilder& definitions() { return definitions_; }

  absl::Status AddRow(const Event& event, AcquisitionSlot* slot) {
    if (!status_.ok()) return status_;
    encoder_.Add(event, slot);
    return FlushIfFull();
  }

  template <typename Detail>
  absl::Status AddWithDetail(const Event& event, const Detail& detail) {
    if (!status_.ok()) return status_;
    encoder_.Add(event, detail);
    detail_bytes_ += SizeOf(detail);
    return FlushIfFull();
  }

  void Forget(const Event& event, AcquisitionSlot slot) { history_.Forget(event, slot); }

  absl::Status Flush() {
    absl::Status status = FlushDefinitions();
    return status.ok() ? FlushEvents() : status;
  }

  // Writes a chunk that is neither events nor definitions, after everything added before it.
  absl::Status WriteBody(Chunk::Kind kind, gmt::Body body, int64_t t_ns,
                         const std::string& snapshot = "") {
    absl::Status status = Flush();
    if (!status.ok()) return status;
    Chunk chunk;
    chunk.set_kind(kind);
    chunk.set_first_t_ns(t_ns);
    chunk.set_last_t_ns(t_ns);
    return WriteChunk(std::move(chunk), &body, 0, snapshot);
  }

  absl::Status WriteSymbols(const gmt::Symbols& symbols) {
    if (options_.parts) symbols_.push_back(symbols);
    gmt::Body body;
    *body.mutable_symbols() = symbols;
    return WriteBody(Chunk::SYMBOLS, std::move(body), last_t_ns_);
  }

  absl::Status WriteSnapshot(const Snapshot& snapshot) {
    gmt::Body body;
    Snapshot whole = snapshot;
    const bool differs = base_.Difference(&whole, body.mutable_snapshot_delta());
    if (!differs) {
      body.clear_snapshot_delta();
      body.mutable_snapshot()->Swap(&whole);
    }
    absl::Status status = WriteBody(differs ? Chunk::SNAPSHOT_DELTA : Chunk::SNAPSHOT,
                                    std::move(body), snapshot.t_ns(), snapshot.name());
    if (status.ok() && !differs) base_.Set(snapshot);
    return status;
  }

  absl::Status WriteCheckpoint(const Checkpoint& checkpoint) {
    if (absl::Status status = Flush(); !status.ok()) return status;
    gmt::Body body;
    *body.mutable_checkpoint() = checkpoint;
    AddKept(history_, body.mutable_checkpoint());
    events_before_checkpoint_ = events_written_;
    if (body.ByteSizeLong() > kMaxBodyBytes) return absl::OkStatus();
    absl::Status status = WriteBody(Chunk::CHECKPOINT, std::move(body), checkpoint.held().t_ns());
    base_.Clear();
    return status;
  }

  absl::Status Finish() {
    absl::Status status = Close();
    if (status.ok()) status = Keep(sink_->Sync());
    if (status.ok()) status_ = absl::FailedPreconditionError("the recording is finished");
    return status;
  }

  absl::StatusOr<std::unique_ptr<Sink>> BeginPart(std::unique_ptr<Sink> sink,
                                                  const Header& header) {
    absl::Status status = Close();
    if (!status.ok()) return status;
    sink_.swap(sink);
    index_.clear_entry();
    next_seq_ = 0;
    bytes_written_ = 0;
    history_ = AcquisitionHistory(Finds());
    events_before_checkpoint_ = events_written_;
    base_.Clear();
    encoder_.Clear();
    status = Begin(header);
    if (status.ok()) status = Restate();
    if (!status.ok()) return status;
    return sink;
  }

  bool WantsCheckpoint(uint64_t held) const {
    const uint64_t events = events_written_ - events_before_checkpoint_;
    return events >= std::max(kEventsBetweenCheckpoints, kEventsForEachHeld * held);
  }

  int64_t last_t_ns() const { return last_t_ns_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t events_written() const { return events_written_; }

 private:
  AcquisitionHistory::Finds Finds() const {
    return options_.slots ? AcquisitionHistory::Finds::kByRowOrSlot
                          : AcquisitionHistory::Finds::kByPlace;
  }

  absl::Status Close() {
    absl::Status status = Flush();
    if (!status.ok()) return status;
    const uint64_t index_offset = bytes_written_;
    return Append(Frame(FrameTag::kIndex, index_.SerializeAsString()) + Footer(index_offset));
  }

  absl::Status Restate() {
    absl::Status status;
    for (gmt::Definitions& definitions : definitions_.TakenSoFar()) {
      gmt::Body body;
      body.mutable_definitions()->Swap(&definitions);
      if (status.ok()) status = WriteBody(Chunk::DEFINITIONS, std::move(body), last_t_ns_);
    }
    for (const gmt::Symbols& symbols : symbols_) {
      gmt::Body body;
      *body.mutable_symbols() = symbols;
      if (status.ok()) status = WriteBody(Chunk::SYMBOLS, std::move(body), last_t_ns_);
    }
    return status;
  }

  absl::Status FlushDefinitions() {
    if (!status_.ok() || !definitions_.has_new()) return status_;
    gmt::Body body;
    *body.mutable_definitions() = definitions_.TakeNew();
    if (options_.on_definitions) options_.on_definitions(body.definitions());
    Chunk chunk;
    chunk.set_kind(Chunk::DEFINITIONS);
    chunk.set_first_t_ns(last_t_ns_);
    chunk.set_last_t_ns(last_t_ns_);
    return WriteChunk(std::move(chunk), &body, 0, "");
  }

  absl::Status FlushIfFull() {
    ++events_written_;
    const bool full = encoder_.events() >= options_.chunk_events ||
                      detail_bytes_ >= kPendingBytes || definitions_.new_bytes() >= kPendingBytes;
    return full ? Flush() : absl::OkStatus();
  }

  absl::Status FlushEvents() {
    if (!status_.ok() || encoder_.events() == 0) return status_;
    Chunk chunk;
    chunk.set_kind(Chunk::EVENTS);
    chunk.set_first_t_ns(encoder_.first_t_ns());
    chunk.set_last_t_ns(encoder_.last_t_ns());
    last_t_ns_ = encoder_.last_t_ns();
    const uint64_t events = encoder_.events();
    detail_bytes_ = 0;
    encoder_.counts().Store(chunk.mutable_counts());
    gmt::Events& columns = encoder_.Finish();
    gmt::Body body;
    body.mutable_events()->Swap(&columns);
    absl::Status status = WriteChunk(std::move(chunk), &body, events, "");
    body.mutable_events()->Swap(
        &columns);  // reuses their memory for the next chunk, if not moved from
    encoder_.Clear();
    return status;
  }

  absl::Status WriteChunk(Chunk chunk, gmt::Body* body, uint64_t events,
                          const std::string& snapshot) {
    chunk.set_sync(SyncWord(kChunkSync));
    chunk.set_seq(next_seq_);
    if (options_.strip.any()) StripBody(&options_.strip, body);
    const int level =
        chunk.kind() == Chunk::EVENTS ? options_.zstd_level_of_events : options_.zstd_level;
    absl::Status packed = packer_.Pack(body, level, &chunk);
    if (!packed.ok()) return packed;  // not a write error: the file is still intact

    Index::Entry* entry = index_.add_entry();
    entry->set_kind(chunk.kind());
    entry->set_offset(bytes_written_);
    entry->set_first_t_ns(chunk.first_t_ns());
    entry->set_last_t_ns(chunk.last_t_ns());
    entry->set_events(events);
    entry->set_snapshot(snapshot);
    ++next_seq_;
    return Append(Frame(FrameTag::kChunk, chunk.SerializeAsString()));
  }

  absl::Status Append(const std::string& bytes) {
    if (!status_.ok()) return status_;
    absl::Status status = Keep(sink_->Append(View(bytes)));
    if (status.ok()) bytes_written_ += bytes.size();
    return status;
  }

  absl::Status Keep(absl::Status status) {
    if (!status.ok() && status_.ok()) status_ = status;
    return status;
  }

  std::unique_ptr<Sink> sink_;
  WriterOptions options_;
  absl::Status status_;
  DefinitionsBuilder definitions_;
  AcquisitionHistory history_{Finds()};
  EventEncoder encoder_{&history_};
  SnapshotBase base_;
  ChunkPacker packer_;
  std::vector<gmt::Symbols> symbols_;  // of all parts
  uint64_t detail_bytes_ = 0;          // of the batch's samples, snapshots, gaps and others
  gmt::Index index_;
  uint32_t next_seq_ = 0;
  int64_t last_t_ns_ = 0;
  uint64_t bytes_written_ = 0;
  uint64_t events_written_ = 0;
  uint64_t events_before_checkpoint_ = 0;
};

absl::StatusOr<std::unique_ptr<RecordingWriter>> RecordingWriter::Create(
    std::unique_ptr<Sink> sink, const Header& header, const WriterOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(sink), options);
  absl::Status status = impl->Begin(header);
  if (!status.ok()) return status;
  return std::unique_ptr<RecordingWriter>(new RecordingWriter(std::move(impl)));
}

RecordingWriter::RecordingWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecordingWriter::~RecordingWriter() = default;

DefinitionsBuilder& RecordingWriter::definitions() { return impl_->definitions(); }

absl::Status RecordingWriter::Add(const Event& event, AcquisitionSlot* slot) {
  return impl_->AddRow(event, slot);
}

void RecordingWriter::Forget(const Event& event, AcquisitionSlot slot) {
  impl_->Forget(event, slot);
}

absl::Status RecordingWriter::Add(const Event& event, const Sample& sample) {
  return impl_->AddWithDetail(event, sample);
}

absl::Status RecordingWriter::Add(const Event& event, const SnapshotTaken& snapshot) {
  return impl_->AddWithDetail(event, snapshot);
}

absl::Status RecordingWriter::Add(const Event& event, const Gap& gap) {
  return impl_->AddWithDetail(event, gap);
}

absl::Status RecordingWriter::Add(const Event& event, absl::string_view other) {
  return impl_->AddWithDetail(event, std::string(other));
}

absl::Status RecordingWriter::Add(const EventBatch& batch) {
  absl::Status status;
  for (auto event = batch.events.begin(); status.ok() && event != batch.events.end(); ++event) {
    switch (FamilyOf(event->kind)) {
      case Family::kSample:
        status = Add(*event, batch.samples[event->detail]);
        break;
      case Family::kSnapshot:
        status = Add(*event, batch.snapshots[event->detail]);
        break;
      case Family::kGap:
        status = Add(*event, batch.gaps[event->detail]);
        break;
      case Family::kOther:
        // A kind of a later format has fields that were not read; without them it is meaningless.
        if (event->kind == OTHER_KIND) status = Add(*event, View(batch.others[event->detail]));
        break;
      default:
        status = Add(*event);
    }
  }
  return status;
}

absl::Status RecordingWriter::Add(const Snapshot& snapshot) {
  return impl_->WriteSnapshot(snapshot);
}

absl::Status RecordingWriter::Add(const Facts& facts) {
  gmt::Body body;
  *body.mutable_facts() = facts;
  return impl_->WriteBody(Chunk::FACTS, std::move(body), impl_->last_t_ns());
}

absl::Status RecordingWriter::Add(const Symbols& symbols) { return impl_->WriteSymbols(symbols); }

absl::Status RecordingWriter::Add(const Losses& losses) {
  gmt::Body body;
  *body.mutable_losses() = losses;
  return impl_->WriteBody(Chunk::LOSSES, std::move(body), impl_->last_t_ns());
}

absl::Status RecordingWriter::Add(const Aggregates& aggregates) {
  gmt::Body body;
  *body.mutable_aggregates() = aggregates;
  return impl_->WriteBody(Chunk::AGGREGATES, std::move(body), aggregates.t_ns());
}

bool RecordingWriter::WantsCheckpoint(uint64_t held) const { return impl_->WantsCheckpoint(held); }

absl::Status RecordingWriter::Add(const Checkpoint& checkpoint) {
  return impl_->WriteCheckpoint(checkpoint);
}

absl::StatusOr<std::unique_ptr<Sink>> RecordingWriter::BeginPart(std::unique_ptr<Sink> sink,
                                                                 const Header& header) {
  return impl_->BeginPart(std::move(sink), header);
}

absl::Status RecordingWriter::Flush() { return impl_->Flush(); }
absl::Status RecordingWriter::Finish() { return impl_->Finish(); }
uint64_t RecordingWriter::bytes_written() const { return impl_->bytes_written(); }
uint64_t RecordingWriter::events_written() const { return impl_->events_written(); }

}  // namespace gmt::format
