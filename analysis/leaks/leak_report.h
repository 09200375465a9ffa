// analysis/leaks/leak_report.h
//
// What FindLeaks() is asked and what it reports (leaks.h): the suspects, growth that is not a leak,
// and the cycles that were compared.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_REPORT_H_
#define GMT_ANALYSIS_LEAKS_LEAK_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/examination/alive.h"
#include "analysis/examination/replay.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/before_attach.h"

namespace gmt::analysis {

enum class LeakTier : uint8_t { kPossible, kLikely, kLeak };
std::string_view NameOf(LeakTier tier);  // "possible", "likely", "leak"

enum class LeakKind : uint8_t {
  kGraphKept,       // an autograd graph, with the activations that it references
  kTensorKept,      // tensors allocated by one line
  kOptimizerGrows,  // state that an optimizer creates repeatedly
  kCatGrowth,       // one tensor that is recreated larger every time
  kDriver,          // driver memory, not allocated by a framework's allocator
  kPinnedHost,      // pinned host memory
  kPoolRatchet,     // a pool that keeps what was outgrown
  kAwaiting,        // freed blocks that a stream keeps forever
  kUntracked,       // the device's use grows but no allocation does
};
// "graph_kept", "tensor_kept", "optimizer_grows", "cat_growth", "driver", "pinned_host",
// "pool_ratchet", "awaiting_stream", "untracked".
std::string_view NameOf(LeakKind kind);

struct LeakStack {
  std::string id;  // "stack/7", "stack/7+9"
  uint32_t stack = 0, forward_stack = 0;
  uint64_t bytes = 0;  // survivors at the end
  uint64_t count = 0;
  double bytes_per_cycle = 0;
};

struct LeakSuspect {
  std::string id;  // "leak/1"
  LeakTier tier = LeakTier::kPossible;
  LeakKind kind = LeakKind::kTensorKept;
  int32_t device = 0;  // kHostDevice: host memory
  // With a 95 % interval.
  double bytes_per_cycle = 0, low_bytes_per_cycle = 0, high_bytes_per_cycle = 0;
  uint64_t bytes = 0;  // leaked at the end: the survivors
  uint64_t count = 0;
  std::vector<LeakStack> stacks;          // that grow in lock-step; most bytes first
  std::optional<FrameText> common_frame;  // the program's deepest frame common to 95 % of growth
  std::string layer;    // module of a model (analysis/stacks/module_path.h) of 95 %; "" if none
  std::string option;   // the library setting that fixes it: "eval_accumulation_steps", or ""
  std::string library;  // that took driver memory; "" if the program itself or unknown
  std::string heap;     // "pytorch", "driver", "host"
  uint64_t since_cycle = 0;  // from 1; 1 if from the beginning
  std::string reason;        // what was observed, as a sentence
  // Why most of it was alive after the last step; for a kept graph, which nodes saved it.
  Alive alive;
  // Suspects that keep blocks at the same steps share this number. `lock_step_with` is the id of
  // the first of them, "" for the first itself. They come from different places but may have one
  // cause.
  size_t lock_step = 0;
  std::string lock_step_with;
  // Memory from before an attach in blocks of the same sizes; possibly leaked by the same stacks.
  LikeBefore before;
  // Time from the recording's end until the device is full at this rate.
  std::optional<int64_t> eta_ns, low_eta_ns, high_eta_ns;
};

// Growth that is not a leak, or has ended.
struct BenignGrowth {
  std::string label;  // "optimizer state (step 1)", "queue of 64, full since step 70", ...
  std::optional<FrameText> frame;
  uint32_t stack = 0;
  uint64_t bytes = 0;
  double bytes_per_cycle = 0;    // if it goes on until what it belongs to ends; otherwise 0
  std::optional<uint64_t> room;  // bytes until its device is full; nullopt: not known
};

// The minimum that a device held per cycle, from the first to the last counted cycle.
struct CycleMinima {
  int32_t device = 0;
  uint64_t first_bytes = 0, last_bytes = 0;
  uint64_t first_cycle = 0;  // from 1; earlier ones are initialisation
  double bytes_per_cycle = 0, low_bytes_per_cycle = 0, high_bytes_per_cycle = 0;
  // All minima from the first cycle on, each of `cycles_per_value` cycles. Empty if the report
  // covers more cycles than the kept events.
  std::vector<uint64_t> values;
  uint64_t cycles_per_value = 1;
};

// The compared cycles.
struct WatchedCycles {
  uint64_t count = 0;
  std::string source;  // analysis/loop/phases.h, analysis/leaks/leak_cycles.h; "" if none was found
  int64_t period_ns = 0;  // the median
  bool inferred = false;  // the recording does not mark where a cycle ends
  bool clear = true;      // false: parts of equal length, not produced by a loop
};

struct LeakReport {
  WatchedCycles cycles;
  bool enough = false;                // whether there are enough cycles for a verdict
  uint64_t cycles_needed = 0;         // for a verdict
  int64_t watched_ns = 0;             // from the first cycle's beginning to the last one's end
  std::vector<LeakSuspect> suspects;  // highest tier first, then most bytes per cycle
  // What has kept more after each cycle so far, if there are at least kCyclesForGrowth cycles but
  // not enough for a verdict; most bytes per cycle first, without ids. It may be a leak, or a cache
  // or queue that fills up.
  std::vector<LeakSuspect> growing;
  std::vector<BenignGrowth> benign;
  std::vector<CycleMinima> minima;  // by device
  std::vector<HeldBefore> before;   // by device and heap
  // Set if the report covers more cycles than the kept events: the recording contains the results
  // of the program's collector, and events only from this time on.
  std::optional<int64_t> details_from_ns;
};

// Cycles needed to show what grows, and for the tiers `likely` and `leak`.
inline constexpr uint64_t kCyclesForGrowth = 40, kCyclesForLikely = 100, kCyclesForLeak = 200;

// What is examined.
struct LeakOptions {
  std::optional<int32_t> device;
  Window window;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_REPORT_H_
