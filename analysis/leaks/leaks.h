// analysis/leaks/leaks.h
//
// Leaks: which stacks hold more after each cycle of the program's loop, and will until memory ends.
// A leak is told from what merely looks like one (a cache that fills, a queue of bounded length, state
// made once) by watching cycles: docs/leaks.md says which tests a suspect has passed, and how many
// cycles each verdict needs.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAKS_H_
#define GMT_ANALYSIS_LEAKS_LEAKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/examination/alive.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/replay.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/before_attach.h"

namespace gmt::analysis {

enum class LeakTier : uint8_t { kPossible, kLikely, kLeak };
std::string_view NameOf(LeakTier tier);  // "possible", "likely", "leak"

enum class LeakKind : uint8_t {
  kGraphKept,       // an autograd graph, with the activations that it holds
  kTensorKept,      // tensors of one line
  kOptimizerGrows,  // state that an optimizer makes again and again
  kCatGrowth,       // one tensor that is made anew, bigger, every time
  kDriver,          // memory of the driver, by other code than a framework's allocator
  kPinnedHost,      // pinned host memory
  kPoolRatchet,     // a pool that keeps what was outgrown
  kAwaiting,        // freed blocks that a stream keeps for ever
  kUntracked,       // the device's use grows and no allocation does
};
// "graph_kept", "tensor_kept", "optimizer_grows", "cat_growth", "driver", "pinned_host", "pool_ratchet",
// "awaiting_stream", "untracked".
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
  double bytes_per_cycle = 0, low_bytes_per_cycle = 0, high_bytes_per_cycle = 0;  // 95 %
  uint64_t bytes = 0;  // leaked at the end: of the survivors
  uint64_t count = 0;
  std::vector<LeakStack> stacks;          // that grow in lock-step; most bytes first
  std::optional<FrameText> common_frame;  // the deepest of the program's own, of 95 % of the growth
  std::string layer;         // module of a model (analysis/stacks/module_path.h) of 95 %; "": none
  std::string option;        // a library's setting that cures it: "eval_accumulation_steps"; "": none
  std::string library;       // that took memory of the driver; "": the program itself, or not known
  std::string heap;          // "pytorch", "driver", "host"
  uint64_t since_cycle = 0;  // from 1; 1: from the first on
  std::string reason;        // what was seen, as a sentence
  // Why most of it was alive after the last step: for a kept graph, saved by which nodes.
  Alive alive;
  // Suspects that keep blocks at the same steps have the same number; the id of the first of them,
  // "" of itself. They are told apart by where they come from, and may have one cause.
  size_t lock_step = 0;
  std::string lock_step_with;
  // Held since before an attach, in blocks of the same sizes: perhaps leaked by the same stacks.
  LikeBefore before;
  // Until the device is full at this rate, from the recording's end.
  std::optional<int64_t> eta_ns, low_eta_ns, high_eta_ns;
};

// Growth that is none, or has ended.
struct BenignGrowth {
  std::string label;  // "optimizer state (step 1)", "queue of 64, full since step 70", ...
  std::optional<FrameText> frame;
  uint32_t stack = 0;
  uint64_t bytes = 0;
};

// What a device held at the least in each cycle, from the first to the last that counts.
struct CycleMinima {
  int32_t device = 0;
  uint64_t first_bytes = 0, last_bytes = 0;
  uint64_t first_cycle = 0;  // from 1: those before it set things up
  double bytes_per_cycle = 0, low_bytes_per_cycle = 0, high_bytes_per_cycle = 0;
};

// The cycles that were compared.
struct WatchedCycles {
  uint64_t count = 0;
  std::string source;  // analysis/loop/phases.h, analysis/leaks/leak_cycles.h; "" where none was found
  int64_t period_ns = 0;  // the median
  bool inferred = false;  // nothing said where a cycle ends
  bool clear = true;      // false: parts of equal length, which no loop made
};

struct LeakReport {
  WatchedCycles cycles;
  bool enough = false;                // cycles for a verdict
  uint64_t cycles_needed = 0;         // for one
  int64_t watched_ns = 0;             // from the first cycle's beginning to the last one's end
  std::vector<LeakSuspect> suspects;  // highest tier first, then most bytes per cycle
  std::vector<BenignGrowth> benign;
  std::vector<CycleMinima> minima;  // by device
  std::vector<HeldBefore> before;   // by device and heap
  // Of more cycles than there are events of: what the program's collector had found out is in the
  // recording, and events from then on.
  std::optional<int64_t> details_from_ns;
};

// Cycles that a verdict needs: of tier `likely`, of tier `leak`.
inline constexpr uint64_t kCyclesForLikely = 100, kCyclesForLeak = 200;

struct LeakOptions {
  std::optional<int32_t> device;
  Window window;
};

LeakReport FindLeaks(const Examination& examination, const LeakOptions& options = {});

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAKS_H_
