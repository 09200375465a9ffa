// format/recording_writer.h
//
// RecordingWriter: writes one .gmt recording front to back. Flushed data is readable whatever
// happens afterwards. Finish() adds the index and footer that make the file complete.
//
// Example
//   auto writer = RecordingWriter::Create(std::move(*sink), header, {});
//   Event event;
//   event.heap = (*writer)->definitions().InternString("driver");
//   (*writer)->Add(event);
//   absl::Status status = (*writer)->Finish();
//
// Order: the writer itself writes definitions before the events, snapshots or symbols that use
// them. Errors: the first write error is kept and returned by every later call (after a full disk,
// flushed data is intact). Thread safety: one thread at a time.

#ifndef GMT_FORMAT_RECORDING_WRITER_H_
#define GMT_FORMAT_RECORDING_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/acquisition_history.h"
#include "format/event.h"
#include "format/messages_fwd.h"
#include "format/strip.h"

namespace gmt::format {

// Destination of the output. All output of the writer passes through it, so that tests can run
// without a disk and inject faults.
class DefinitionsBuilder;

class Sink {
 public:
  virtual ~Sink() = default;
  // Appends all of `bytes` or fails.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes what was appended durable.
  virtual absl::Status Sync() = 0;
};

// Writes to an open file descriptor, which it owns and closes.
std::unique_ptr<Sink> FileDescriptorSink(int fd, absl::string_view path_for_messages);
// Creates `path`; fails if it exists, unless `overwrite`.
enum class IfExists { kFail, kOverwrite };
absl::StatusOr<std::unique_ptr<Sink>> FileSink(absl::string_view path, IfExists if_exists);

struct WriterOptions {
  bool compress = true;  // if not, `protoc --decode gmt.File` shows every event
  int zstd_level = 3;
  uint32_t chunk_events = 32768;  // events per EVENTS chunk
  // Lower for the numerous events: a third of the time for 5 % more bytes.
  int zstd_level_of_events = 1;
  Strip strip;  // applied to everything that is written
  // Whether BeginPart() may be called. Definitions and names are then also kept in memory.
  bool parts = false;
  // Whether the caller keeps the slots of allocations and passes them with their events, which
  // saves the writer a table of them. An event without its slot is written in full.
  bool slots = false;
  // Called with each chunk of new definitions, in order, before it is written; may be empty.
  std::function<void(const gmt::Definitions&)> on_definitions = nullptr;
};

class RecordingWriter {
 public:
  // Writes the magic and the header.
  static absl::StatusOr<std::unique_ptr<RecordingWriter>> Create(std::unique_ptr<Sink> sink,
                                                                 const Header& header,
                                                                 const WriterOptions& options);
  ~RecordingWriter();
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  DefinitionsBuilder& definitions();

  // For the families that fit into a row. `slot`, unless null, is that of the last acquisition at
  // the event's place, and is set to the slot of the event if that is an acquisition
  // (WriterOptions::slots).
  absl::Status Add(const Event& event, AcquisitionSlot* slot = nullptr);
  absl::Status Add(const Event& event, const Sample& sample);
  absl::Status Add(const Event& event, const SnapshotTaken& snapshot);
  absl::Status Add(const Event& event, const Gap& gap);
  absl::Status Add(const Event& event, absl::string_view other);
  // Adds all events of a batch with their details, for copying events from a reader to a writer.
  // Ids must be those of definitions().
  absl::Status Add(const EventBatch& batch);

  // Forgets the allocation of the place of `event`, if it is still in `slot`, because no event will
  // end it.
  void Forget(const Event& event, AcquisitionSlot slot);

  absl::Status Add(const Snapshot& snapshot);
  absl::Status Add(const Facts& facts);
  absl::Status Add(const Symbols& symbols);
  absl::Status Add(const Losses& losses);
  absl::Status Add(const Aggregates& aggregates);

  // Whether there have been enough events since the last checkpoint, or since the beginning of the
  // file, for the cost of another one. `held`: how many allocations it would have.
  bool WantsCheckpoint(uint64_t held) const;
  // Adds a point at which a reader may begin (format/reading_plan.h). Does nothing if so much is
  // held that it would not fit into a chunk.
  absl::Status Add(const Checkpoint& checkpoint);

  // Completes the file like Finish() and continues in another one, the next part of the same
  // recording. Writes its header and repeats all definitions and names under their existing ids.
  // Returns the sink of the completed part, which may still have bytes to write. REQUIRES:
  // WriterOptions::parts.
  absl::StatusOr<std::unique_ptr<Sink>> BeginPart(std::unique_ptr<Sink> sink, const Header& header);

  // Writes everything added so far; afterwards a reader of the growing file can see it.
  absl::Status Flush();
  // Flushes, writes index and footer, and syncs. Nothing can be added afterwards.
  absl::Status Finish();

  uint64_t bytes_written() const;   // of this part
  uint64_t events_written() const;  // of all parts

 private:
  class Impl;
  explicit RecordingWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_RECORDING_WRITER_H_
