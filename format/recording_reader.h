// format/recording_reader.h
//
// RecordingReader: reads a .gmt recording front to back in memory bounded by one chunk, whatever
// state the file is in.
//
// A file without its footer was cut (the collector died, the disk filled, it is still being
// written): reading ends quietly at the last whole chunk and complete() is false. Damage in the
// middle is skipped to the next chunk, counted in damage(), and the events on its far side are
// still delivered, behind a Gap event; a free whose allocation was lost there has no distance and
// is delivered as the file has it.
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
#include "format/messages_fwd.h"

namespace gmt::format {

class ByteSource;

// What a reader hands out, in file order. Override what you need. An error ends the reading and is
// returned.
class RecordingVisitor {
 public:
  virtual ~RecordingVisitor() = default;
  virtual absl::Status OnHeader(const Header&) { return absl::OkStatus(); }
  // `batch` holds the events of one chunk; frees have heap, address, size, device and so on filled
  // in from the allocation they end.
  virtual absl::Status OnEvents(const EventBatch& batch) = 0;
  virtual absl::Status OnSnapshot(const Snapshot&) { return absl::OkStatus(); }
  virtual absl::Status OnFacts(const Facts&) { return absl::OkStatus(); }
  virtual absl::Status OnLosses(const Losses&) { return absl::OkStatus(); }
  virtual absl::Status OnAggregates(const Aggregates&) { return absl::OkStatus(); }
};

struct Damage {
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;   // skipped; 0 where a chunk is missing
  uint32_t chunk = 0;   // chunks read before it
  std::string what;     // "CRC32C", "length", "zstd", ...
};

class RecordingReader {
 public:
  // With the older parts that lie beside it (format/parts.h), which are read before it as one
  // recording. Fails with a message that names the file where it does not exist, cannot be read, or
  // is no recording.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> Open(absl::string_view path);
  // Reads from memory; `name` stands for the path in messages.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> FromBytes(std::string bytes,
                                                                    absl::string_view name);
  ~RecordingReader();

  // Reads all of the file once. Symbols and definitions are complete afterwards; a visitor may look
  // up what it is given while it reads. Ids are unique in the whole file, also where it holds
  // several segments (`cat a.gmt b.gmt`).
  absl::Status Read(RecordingVisitor& visitor, Returns returns = Returns::kCompleted);

  // The first, of the oldest part; empty where it is damaged.
  const Header& header() const;
  const Definitions& definitions() const;
  // After Read(): index and footer are there and right, and nothing is damaged.
  bool complete() const;
  const std::vector<Damage>& damage() const;
  uint32_t chunks() const;
  uint64_t bytes() const;
  // Of these, what has been handed out, with what is being handed out: for a visitor, while it reads.
  uint64_t bytes_taken() const;

 private:
  class Impl;
  static absl::StatusOr<std::unique_ptr<RecordingReader>> FromSource(
      std::unique_ptr<ByteSource> source, absl::string_view name);
  explicit RecordingReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_RECORDING_READER_H_
