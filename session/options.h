// session/options.h
//
// Options: how to record a process. The same parser serves the environment variable that the
// preloaded library reads (GPUMEMTRACE="key=value,flag,..."), the collector, and the program that
// composes the variable.
//
// In the text, commas separate pairs, `+` separates items of a list, and `:` separates a sub-value.
//
// Thread safety: plain values.

#ifndef GMT_SESSION_OPTIONS_H_
#define GMT_SESSION_OPTIONS_H_

#include <stdint.h>

#include <string_view>

namespace gmt::session {

// kBest: the library's own unwinder on machines that have one, otherwise libgcc's.
enum class Unwinder { kNone, kBest, kLibunwind, kLibgcc };

enum Heaps : uint32_t {
  kDriverHeap = 1,   // device, managed, pools, virtual memory management, arrays
  kHostHeap = 2,     // pinned, registered
  kPytorchHeap = 4,  // blocks of PyTorch's caching allocator
  kNvtxHeap = 8,     // regions that a program registers with NVTX
  kAllHeaps = 15,
};

// What is requested from CUPTI. kOff: nothing. kAuto: creation and destruction of streams,
// contexts, modules and graphs, and synchronization. kFull: also records of device activities.
enum class Cupti { kOff, kAuto, kFull };

struct Options {
  char output[1024] = "gpumemtrace.%h.%p.gmt";  // pattern
  Unwinder native_stacks = Unwinder::kBest;
  bool python_stacks = true;
  bool free_stacks = false;
  uint32_t heaps = kAllHeaps;
  bool roles = true;  // record what PyTorch's tensors are used for
  Cupti cupti = Cupti::kAuto;
  uint64_t ring_bytes = 16 << 20;  // a power of two
  bool snapshot_at_oom = true;
  bool snapshot_at_exit = true;
  uint64_t snapshot_every_ns = 0;      // 0: off
  uint64_t snapshot_growth_bytes = 0;  // 0: off
  bool snapshot_at_marks = false;
  char snapshot_mark[64] = {};  // only marks of that name; empty: all
  char listen[256] = {};        // "127.0.0.1:9400", "unix:PATH"; empty: off
  bool follow_fork = true;
  uint64_t exit_wait_ns = 1000000000;
  bool quiet = false;
  bool strip_paths = false, strip_args = false;  // what to remove from the recording
  bool dormant = false;                          // record only while a client is attached
  // Limits of the recording on disk (docs/long-runs.md); 0: none.
  uint64_t max_bytes = 0;
  uint64_t max_ns = 0;  // maximum age of events
  uint32_t parts = 0;
};

// A KEY=VALUE pair that was rejected, and the reason.
struct OptionError {
  std::string_view pair;
  const char* why;  // "unknown option", "not a size", ...
};

// Applies the pairs of `text` to *options in order. Calls report(context, error) for each invalid
// pair; the valid ones still apply.
void ParseOptions(std::string_view text, Options* options,
                  void (*report)(void* context, const OptionError& error), void* context);

// Parses "16MiB", "1GiB", "4096". Returns false for anything else and for values that do not fit.
bool ParseSize(std::string_view text, uint64_t* bytes);
// Parses "1s", "500ms", "10m", "24h".
bool ParseDuration(std::string_view text, uint64_t* ns);

}  // namespace gmt::session

#endif  // GMT_SESSION_OPTIONS_H_
