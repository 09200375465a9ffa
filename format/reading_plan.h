// format/reading_plan.h
//
// ReadingPlan: which chunks of a recording need not be read for an answer about a time range. What
// was held when the range begins is known from a checkpoint before it (proto/gmt.proto,
// Checkpoint), so the events before that checkpoint are skipped, and so are those long after the
// range.
//
//   checkpoints           C         C         C         C         C         C
//   events      ......... | ....... | ....... | ....... | ....... | ....... | ....
//   range                                      |<--->|
//   read                            |<------------------------------------->|
//
// One interval more than necessary is read on both sides. Answers about the range also use what
// happens around it: the steps of a training loop, and when memory is freed that the range
// allocates.
//
// Thread safety: plain values.

#ifndef GMT_FORMAT_READING_PLAN_H_
#define GMT_FORMAT_READING_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "format/byte_source.h"
#include "format/messages_fwd.h"
#include "format/time_range.h"

namespace gmt::format {

struct SkippedChunk {
  uint64_t offset = 0, bytes = 0;  // the place of its frame in the source
  uint32_t seq = 0;
  int64_t last_t_ns = 0;
};

struct ReadingPlan {
  std::vector<SkippedChunk> skipped;  // in the order of the file
  // The offset of the checkpoint with which reading begins; 0: it begins at the start.
  uint64_t checkpoint = 0;
  TimeRange read;  // the time of the events that are not skipped
};

// Returns a plan for the recording in `source`, which skips nothing if everything has to be read:
// there are no checkpoints, something is damaged, or several recordings were joined. Reads only the
// first bytes of each chunk, so it also works for a file that is still being written. Fails only if
// reading fails.
absl::StatusOr<ReadingPlan> PlanReading(ByteSource& source, const TimeRange& range);

// Returns the sums at each checkpoint, the last of which are those of the whole recording. Returns
// nothing if events follow the last one, something is damaged, older parts may be missing, or
// several recordings were joined. Reads the checkpoints, and the first bytes of all other chunks.
absl::StatusOr<std::vector<std::shared_ptr<const Aggregates>>> ReadCheckpointSums(
    ByteSource& source);

}  // namespace gmt::format

#endif  // GMT_FORMAT_READING_PLAN_H_
