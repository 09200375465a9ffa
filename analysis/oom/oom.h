// analysis/oom/oom.h
//
// Oom: why a request for memory failed: one verdict, the numbers it follows from, what would help
// and what would not, each with its bytes on this run. docs/oom.md has the decisions in order.
//
//   O1  All numbers of the evidence refer to the same moment, that of the failed request, and to
//       one replay.
//   O2  live + free + outside + other processes + not apart + system + unexplained = what the
//       device had in use, in the evidence as in the ledger.
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
#include "analysis/examination/alive.h"
#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/leaks/leaks.h"
#include "analysis/ledger/ledger.h"
#include "analysis/oom/expected_peak.h"
#include "analysis/oom/optimizer.h"

namespace gmt::analysis {

enum class OomVerdict : uint8_t {
  kNone,           // nothing failed
  kUnknown,        // nothing was requested while it was recorded, so that nothing could fail
  kCapacity,       // live memory needs the whole device
  kFragmentation,  // enough is free, but in pieces that are too small
  kLeak,           // it would fit without leaked memory
  kOutside,        // this process's memory outside the framework
  kSingleRequest,  // more than the device has
  kCap,            // a limit below the device's memory
  kOtherProcess,
  kStreamDeferred,  // freed, but awaiting streams
  kPrivatePool,     // free in pools that the request may not use
};
inline constexpr size_t kOomVerdicts = 11;
std::string_view NameOf(OomVerdict verdict);  // "capacity", "single_request", ...
// Whether an allocation failed.
constexpr bool IsFailure(OomVerdict verdict) {
  return verdict != OomVerdict::kNone && verdict != OomVerdict::kUnknown;
}

// Whether an action by itself lets the step finish, and the steps like it.
enum class Suffices : uint8_t {
  kNo,
  kPerhaps,  // if the peak is as expected
  kYes,      // even if the peak is somewhat higher
};

struct OomAction {
  std::string what;  // an instruction: "set PYTORCH_ALLOC_CONF=expandable_segments:True"
  uint64_t effect_bytes = 0;
  Suffices suffices = Suffices::kNo;
  bool is_estimate = false;
  std::string why;
};

struct OomEvidence {
  uint64_t total_bytes = 0;   // of the device; 0 if unknown
  uint64_t needed_bytes = 0;  // what the allocator requests from the driver for the request
  // Live blocks of a framework; without a framework, what the process has allocated.
  uint64_t live_bytes = 0;
  uint64_t free_bytes = 0, largest_free_bytes = 0, reserved_bytes = 0;
  uint64_t outside_bytes = 0;  // this process's other memory: libraries, contexts, code
  uint64_t other_processes_bytes = 0;
  uint64_t not_apart_bytes = 0;  // contexts and other processes, not distinguished
  uint64_t system_bytes = 0;     // reserved by driver and firmware
  int64_t unexplained_bytes = 0;
  uint64_t grown_bytes = 0;  // the part not known to be this process's
  uint64_t leaked_bytes = 0;
  // As reported by the driver for this failure, otherwise from the ledger; nullopt if unknown.
  std::optional<uint64_t> driver_free_bytes;
  // The allocator's own limit, if one was hit. It lies between what was reserved and that plus what
  // was needed; exact if the settings specify it.
  std::optional<uint64_t> limit_bytes;
  bool driver_refused = false;  // the driver was asked and refused
  uint64_t captures = 0;        // graph captures in progress
  uint64_t retries = 0;         // earlier ones
  int64_t first_retry_t_ns = 0;
  uint64_t retry_ns = 0;  // time spent in retries
  FragmentationSplit split;
  // What the framework's blocks could have used: what it held, live or free, plus the driver's free
  // memory.
  uint64_t available_bytes = 0;
  ExpectedPeak expected;  // 0 bytes if no framework's allocator failed

  // Other processes' memory as far as known; the undistinguished part may include ours.
  uint64_t others_bytes() const { return other_processes_bytes + not_apart_bytes + grown_bytes; }
};

// Memory without which the request would have fitted, each cause alone.
struct OomCause {
  OomVerdict verdict = OomVerdict::kCapacity;
  uint64_t bytes = 0;
};

// Live memory of one allocating line.
struct OomHolder {
  uint32_t stack = 0, forward_stack = 0;
  uint64_t bytes = 0, count = 0;
  uint64_t each_bytes = 0;  // 0 if they differ
  Category category = Category::kUnknown;
  std::vector<Alive> alive;  // why it is alive; most bytes first
};

// What this step would additionally need.
struct StillToCome {
  bool observed = false;  // PyTorch reported which parameters get a gradient; else all do
  uint64_t gradient_bytes = 0;
  // The optimizer's state: at least, and with momentum or what else its class may keep.
  uint64_t optimizer_bytes = 0, most_optimizer_bytes = 0;
  Optimizer optimizer;
  uint64_t floor_bytes = 0;  // parameters, gradients and state, without activations
};

struct OomReport {
  OomVerdict verdict = OomVerdict::kNone;
  Confidence confidence = Confidence::kLow;
  int32_t device = 0;
  std::string heap;  // where it failed: "pytorch", "driver"
  uint64_t requested_bytes = 0;
  Step step = 0;
  int64_t t_ns = 0;
  uint32_t stack = 0, forward_stack = 0;
  std::optional<uint64_t> cycle;  // the step of the training loop, from 1
  std::optional<Phase> phase;
  bool was_fatal = false;      // the process did not continue allocating as before
  uint64_t failures = 0;       // in the recording; this is the last that counts
  uint64_t host_failures = 0;  // of pinned host memory: no device ran out
  OomEvidence evidence;
  std::vector<OomCause> causes;  // most bytes first
  // Largest effect first; for fragmentation, first what merges the pieces.
  std::vector<OomAction> actions;
  std::vector<OomAction> not_helpful;   // in the order in which people try them
  std::vector<std::string> findings;    // sentences in addition to the verdict
  std::vector<CategoryUse> categories;  // live at that moment
  std::vector<OomHolder> holders;       // most bytes first
  // Activations that checkpointing would save: all but one layer's, of lines that run in several
  // layers.
  uint64_t checkpoint_bytes = 0;
  std::optional<StillToCome> still_to_come;
  std::vector<Pin> pins;
  std::vector<LedgerRow> outside;  // this process outside the framework, and other processes
  std::string leak_id;             // of the decisive leak
  // The tensor for which the memory was requested: "float32", "[64, 1024, 1024]"; empty if unknown.
  std::string dtype, shape;
  // N if the request is, or without a shape may be, for N x N numbers of 2 or 4 bytes.
  std::optional<uint64_t> square;
};

OomReport ExplainOom(const Examination& examination, const Categories& categories,
                     const LeakReport& leaks);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_OOM_H_
