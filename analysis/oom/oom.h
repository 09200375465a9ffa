// analysis/oom/oom.h
//
// Oom: why a request for memory failed: one verdict, the numbers that it follows from, what would
// help and what would not, with the bytes of each on this run. docs/oom.md has the decisions in order.
//
//   O1  Every number of the evidence is of the same moment, that of the failed request, and of one
//       replay.
//   O2  live + free + outside + other processes + not apart + system + unexplained = what the device
//       had in use, in the evidence as in the ledger.
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
  kPrivatePool,     // free in pools that the request may not use
};
inline constexpr size_t kOomVerdicts = 10;
std::string_view NameOf(OomVerdict verdict);  // "capacity", "single_request", ...

struct OomAction {
  std::string what;  // an instruction: "set PYTORCH_ALLOC_CONF=expandable_segments:True"
  uint64_t effect_bytes = 0;
  bool is_enough = false;  // for this request, by itself
  bool is_estimate = false;
  std::string why;
};

struct OomEvidence {
  uint64_t total_bytes = 0;   // of the device; 0: not known
  uint64_t needed_bytes = 0;  // that the allocator asks of the driver for the request
  // Live blocks of a framework; without one, what the process has allocated.
  uint64_t live_bytes = 0;
  uint64_t free_bytes = 0, largest_free_bytes = 0, reserved_bytes = 0;
  uint64_t outside_bytes = 0;  // of this process, beside that: libraries, contexts, code
  uint64_t other_processes_bytes = 0;
  uint64_t not_apart_bytes = 0;  // contexts and other processes, which nobody told apart
  uint64_t system_bytes = 0;     // the driver's and the firmware's own
  int64_t unexplained_bytes = 0;
  uint64_t grown_bytes = 0;  // of that: not of this process, as far as that was told apart
  uint64_t leaked_bytes = 0;
  // As the driver said it for this failure; else what the ledger leaves; nullopt: nobody told.
  std::optional<uint64_t> driver_free_bytes;
  // Of a limit of the allocator's own, where one was hit: it lies between what was reserved and that
  // plus what was needed; exact where the settings name it.
  std::optional<uint64_t> limit_bytes;
  bool driver_refused = false;  // the driver was asked and said no
  uint64_t captures = 0;        // into graphs, under way
  uint64_t retries = 0;         // before
  int64_t first_retry_t_ns = 0;
  uint64_t retry_ns = 0;  // spent in them
  FragmentationSplit split;
  // What the framework's blocks could have had: what it held, live or free, and what the driver had.
  uint64_t available_bytes = 0;
  ExpectedPeak expected;  // 0 bytes if no framework's allocator failed

  // Of others, as far as known: what nobody told apart may be ours in part.
  uint64_t others_bytes() const { return other_processes_bytes + not_apart_bytes + grown_bytes; }
};

// What would have made the request fit by being gone, each alone.
struct OomCause {
  OomVerdict verdict = OomVerdict::kCapacity;
  uint64_t bytes = 0;
};

// Live memory from one line.
struct OomHolder {
  uint32_t stack = 0, forward_stack = 0;
  uint64_t bytes = 0, count = 0;
  uint64_t each_bytes = 0;  // 0: they differ
  Category category = Category::kUnknown;
  std::vector<Alive> alive;  // why it is; most bytes first
};

// What this step would need beyond what it has, if it is one of a training with Adam.
struct StillToCome {
  bool observed = false;  // PyTorch said which parameters get a gradient; else all are taken to
  uint64_t gradient_bytes = 0, optimizer_bytes = 0;
  uint64_t floor_bytes = 0;  // parameters, gradients and state: before any activation
};

struct OomReport {
  OomVerdict verdict = OomVerdict::kNone;
  Confidence confidence = Confidence::kLow;
  int32_t device = 0;
  std::string heap;  // who was asked: "pytorch", "driver"
  uint64_t requested_bytes = 0;
  Step step = 0;
  int64_t t_ns = 0;
  uint32_t stack = 0, forward_stack = 0;
  std::optional<uint64_t> cycle;  // of the training loop's steps, from 1
  std::optional<Phase> phase;
  bool was_fatal = false;      // the process did not go on allocating as before
  uint64_t failures = 0;       // in the recording; this is the last that counts
  uint64_t host_failures = 0;  // of pinned host memory: no device ran out
  OomEvidence evidence;
  std::vector<OomCause> causes;  // most bytes first
  // Most effect first; where it is fragmentation, first what joins the pieces.
  std::vector<OomAction> actions;
  std::vector<OomAction> not_helpful;   // in the order in which people try them
  std::vector<std::string> findings;    // sentences beside the verdict
  std::vector<CategoryUse> categories;  // live at that moment
  std::vector<OomHolder> holders;       // most bytes first
  // Activations that checkpoints would spare: of lines that run in several layers, all but one layer's.
  uint64_t checkpoint_bytes = 0;
  std::optional<StillToCome> still_to_come;
  std::vector<Pin> pins;
  std::vector<LedgerRow> outside;  // of this process beside the framework, and other processes
  std::string leak_id;             // of the leak that counts
  std::optional<uint64_t> square;  // N where the request is N x N numbers of 2 or 4 bytes, perhaps
};

OomReport ExplainOom(const Examination& examination, const Categories& categories,
                     const LeakReport& leaks);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_OOM_H_
