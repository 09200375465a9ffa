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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/recording_writer.h"

namespace gmt::format {

struct Repaired {
  uint64_t chunks = 0;      // kept
  uint64_t gaps = 0;        // places where something was lost
  uint64_t bytes_lost = 0;  // skipped in the source
};

// Reads the recording at `path` and appends a mended one to `sink`. Fails where nothing can be
// saved.
absl::StatusOr<Repaired> RepairRecording(absl::string_view path, std::unique_ptr<Sink> sink);

}  // namespace gmt::format

#endif  // GMT_FORMAT_REPAIR_H_
