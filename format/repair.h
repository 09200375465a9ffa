// format/repair.h
//
// Repairs a cut or damaged recording: writes a complete one with everything that is intact.
//
// Intact chunks are copied unchanged except for their numbers. A "gap" event marks each place where
// data is missing. Every file segment gets an index and a footer. The result is complete and reads
// without warnings; lost data stays lost.
//
// Thread safety: pure function.

#ifndef GMT_FORMAT_REPAIR_H_
#define GMT_FORMAT_REPAIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/recording_writer.h"

namespace gmt::format {

// A place in the source where something was lost.
struct RepairLoss {
  uint64_t offset = 0;  // in the source, start of the loss
  uint64_t bytes = 0;   // skipped; 0 if whole chunks are missing
  std::string what;     // "CRC32C", "cut", "missing chunks" ...
  int64_t from_t_ns = 0;
  int64_t to_t_ns = 0;  // of the first chunk after it; from_t_ns if none follows
};

struct Repaired {
  uint64_t chunks = 0;           // kept
  uint64_t events = 0;           // in the kept chunks
  uint64_t segments = 0;         // joined recordings in the source; each is complete now
  uint64_t gaps = 0;             // places with a gap event
  uint64_t bytes_lost = 0;       // skipped in the source
  uint64_t bytes_behind = 0;     // after the end of the recording, never part of it
  uint64_t headers_made = 0;     // segments whose header was lost
  uint64_t ends_made = 0;        // segments whose index or footer was lost
  std::vector<RepairLoss> lost;  // the first thousand, in order

  bool was_whole() const {
    return bytes_lost + bytes_behind + gaps + headers_made + ends_made == 0;
  }
};

// Reads the recording at `path` and appends a repaired one to `sink`. Fails if nothing can be
// recovered.
absl::StatusOr<Repaired> RepairRecording(absl::string_view path, std::unique_ptr<Sink> sink);
// The same for a recording in memory; `name` replaces the path in messages.
absl::StatusOr<Repaired> RepairBytes(std::string bytes, absl::string_view name,
                                     std::unique_ptr<Sink> sink);

}  // namespace gmt::format

#endif  // GMT_FORMAT_REPAIR_H_
