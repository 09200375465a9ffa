// format/repair.h
//
// Repair: a whole recording of what is left of a cut or damaged one.
//
// Whole chunks are copied as they are but for their numbers; where something is missing a "gap"
// event says so; every file segment gets an index and a footer. The result reads without notes and
// is complete; what was lost stays lost.
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
  uint64_t offset = 0;  // in the source, where it begins
  uint64_t bytes = 0;   // skipped; 0 where whole chunks are missing without a trace
  std::string what;     // "CRC32C", "cut", "missing chunks" ...
  int64_t from_t_ns = 0;
  int64_t to_t_ns = 0;  // of the first chunk behind it; from_t_ns where none follows
};

struct Repaired {
  uint64_t chunks = 0;           // kept
  uint64_t events = 0;           // in them
  uint64_t segments = 0;         // recordings that were joined in the source, each whole now
  uint64_t gaps = 0;             // places with a gap event
  uint64_t bytes_lost = 0;       // skipped in the source
  uint64_t bytes_behind = 0;     // behind the end of the recording, never part of it
  uint64_t headers_made = 0;     // segments whose header was lost
  uint64_t ends_made = 0;        // segments whose index or footer was lost
  std::vector<RepairLoss> lost;  // the first thousand, in order

  bool was_whole() const {
    return bytes_lost + bytes_behind + gaps + headers_made + ends_made == 0;
  }
};

// Reads the recording at `path` and appends a mended one to `sink`. Fails where nothing can be
// saved.
absl::StatusOr<Repaired> RepairRecording(absl::string_view path, std::unique_ptr<Sink> sink);
// The same of what is in memory; `name` stands for the path in messages.
absl::StatusOr<Repaired> RepairBytes(std::string bytes, absl::string_view name,
                                     std::unique_ptr<Sink> sink);

}  // namespace gmt::format

#endif  // GMT_FORMAT_REPAIR_H_
