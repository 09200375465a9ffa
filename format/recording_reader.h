// format/recording_reader.h
//
// RecordingReader: reads a .gmt recording front to back in memory bounded by one chunk, whatever
// state the file is in.
//
// A file without its footer was cut (the collector died, the disk filled up, or it is still being
// written): reading ends without an error at the last complete chunk, and complete() is false.
// Damage in the middle is skipped up to the next chunk and reported by damage(). The events after
// it are still delivered, preceded by a Gap event. A free whose allocation was lost there has no
// distance and is delivered as it is in the file.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_RECORDING_READER_H_
#define GMT_FORMAT_RECORDING_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/definitions.h"
#include "format/event.h"
#include "format/event_counts.h"
#include "format/messages_fwd.h"

namespace gmt::format {

class ByteSource;
struct TimeRange;

// Receives the contents of a recording in file order. Override what you need. Returning an error
// ends the reading with that error.
class RecordingVisitor {
 public:
  virtual ~RecordingVisitor() = default;
  virtual absl::Status OnHeader(const Header&) { return absl::OkStatus(); }
  // `batch` holds the events of one chunk. Heap, address, size, device etc. of frees are filled in
  // from the allocation that they end.
  virtual absl::Status OnEvents(const EventBatch& batch) = 0;
  // In place of OnEvents(), if events are only counted: those of one chunk, of which the latest is
  // at `last_t_ns`. Returns false if the numbers do not suffice; that ends the reading.
  virtual bool OnEventCounts(const std::vector<EventCount>& /*counts*/, int64_t /*last_t_ns*/) {
    return false;
  }
  virtual absl::Status OnSnapshot(const Snapshot&) { return absl::OkStatus(); }
  virtual absl::Status OnFacts(const Facts&) { return absl::OkStatus(); }
  virtual absl::Status OnLosses(const Losses&) { return absl::OkStatus(); }
  virtual absl::Status OnAggregates(const Aggregates&) { return absl::OkStatus(); }
  // In place of all events before it, if only a time range is read (ReadRange()).
  virtual absl::Status OnCheckpoint(const Checkpoint&) { return absl::OkStatus(); }
};

struct Damage {
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;   // skipped; 0 if a chunk is missing
  uint32_t chunk = 0;   // chunks read before it
  std::string what;     // "CRC32C", "length", "zstd", ...
};

class RecordingReader {
 public:
  // Opens the recording together with its older parts (format/parts.h), which are read before it as
  // one recording. Fails with a message that contains the file name if it does not exist, cannot be
  // read, or is not a recording.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> Open(absl::string_view path);
  // The same for bytes from elsewhere; `name` replaces the path in messages.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> FromSource(
      std::shared_ptr<ByteSource> source, absl::string_view name);
  static absl::StatusOr<std::unique_ptr<RecordingReader>> FromBytes(std::string bytes,
                                                                    absl::string_view name);
  ~RecordingReader();

  // Reads the whole file; can be called once. Symbols and definitions are complete afterwards, but
  // a visitor may look up ids that it receives during reading. Ids are unique within the file,
  // even if it has several segments (`cat a.gmt b.gmt`).
  absl::Status Read(RecordingVisitor& visitor, Returns returns = Returns::kCompleted);

  // Like Read(), but skips the events and snapshots that an answer about `range` does not need
  // (format/reading_plan.h). If the first ones are skipped, the visitor gets a checkpoint instead.
  absl::Status ReadRange(RecordingVisitor& visitor, const TimeRange& range);
  // Returns the range of which ReadRange() reads events; everything until then.
  const TimeRange& range_read() const;

  // Like Read(), but events are only counted, which needs a fraction of the time. Every checksum is
  // checked, so the visitor and the functions below report what they would after Read(). Returns
  // false, and has delivered only a part, if that cannot be: because of damage, of a chunk without
  // counts, or because the visitor declined.
  absl::StatusOr<bool> ReadCounts(RecordingVisitor& visitor);

  // Makes all text of the recording safe to print (format/printable.h). Call it before Read().
  void MakeStringsPrintable();

  // Returns the first header, that of the oldest part; empty if it is damaged.
  const Header& header() const;
  const Definitions& definitions() const;
  // Valid after Read(). Returns whether index and footer exist and are correct, and there is no
  // damage.
  bool complete() const;
  const std::vector<Damage>& damage() const;
  uint32_t chunks() const;
  uint64_t bytes() const;
  // Returns the bytes of what has been or is just being delivered, for a visitor during reading.
  uint64_t bytes_taken() const;

 private:
  class Impl;
  explicit RecordingReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_RECORDING_READER_H_
