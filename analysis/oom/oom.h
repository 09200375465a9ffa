// analysis/oom/oom.h
//
// Oom: why a request for memory failed: one verdict, the numbers that it follows from, what would
// help and what would not, with the bytes of each on this run. docs/oom.md has the decisions in order.
//
//   O1  Every number of the evidence is of the same moment, that of the failed request, and of one
//       replay.
//   O2  live + free + outside = what the device had in use, in the evidence as in the ledger.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_OOM_OOM_H_
#define GMT_ANALYSIS_OOM_OOM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/confidence.h"
#include "analysis/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/leaks/leaks.h"
#include "analysis/ledger/ledger.h"

namespace gmt::analysis {

enum class OomVerdict : uint8_t {
  kNone,           // nothing failed
  kCapacity,       // what is live needs the device
  kFragmentation,  // enough is free, in pieces that are too small
  kLeak,           // it would fit without what has leaked
  kOutside,        // this process's memory outside the framework
  kSingleRequest,  // more than the device has
  kCap,            // a limit below the device's memory
  kOtherProcess,
  kStreamDeferred,  // freed, and waiting for streams
  kPrivatePool,     // free in private pools
};
std::string_view NameOf(OomVerdict verdict);  // "capacity", "single_request", ...

struct OomAction {
  std::string what;  // an instruction: "set PYTORCH_ALLOC_CONF=expandable_segments:True"
  uint64_t effect_bytes = 0;
  std::string why;
};

struct OomEvidence {
  uint64_t total_bytes = 0;  // of the device; 0: not known
  uint64_t live_bytes = 0, free_bytes = 0, largest_free_bytes = 0, reserved_bytes = 0;
  uint64_t outside_bytes = 0, other_processes_bytes = 0, leaked_bytes = 0;
  std::optional<uint64_t> driver_free_bytes, limit_bytes;
  uint64_t retries = 0;
  int64_t first_retry_t_ns = 0;
  FragmentationSplit split;
};

struct OomReport {
  OomVerdict verdict = OomVerdict::kNone;
  Confidence confidence = Confidence::kLow;
  int32_t device = 0;
  uint64_t requested_bytes = 0;
  Step step = 0;
  int64_t t_ns = 0;
  uint32_t stack = 0, forward_stack = 0;
  std::optional<uint64_t> cycle;  // index of the training loop's step
  std::optional<Phase> phase;
  bool was_fatal = false;  // the process did not go on allocating as before
  uint64_t failures = 0;   // in the recording; this is the last that counts
  OomEvidence evidence;
  std::vector<OomAction> actions, not_helpful;  // most effect first
  std::vector<std::string> findings;            // sentences beside the verdict
  std::vector<CategoryUse> categories;          // live at that moment
  std::vector<Pin> pins;
};

OomReport ExplainOom(const Examination& examination, const Categories& categories,
                     const LeakReport& leaks);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_OOM_H_
