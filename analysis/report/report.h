// analysis/report/report.h
//
// What holds the memory: the data behind `gpumemtrace report`, computed from one Replay.
//
// Sums that always hold, for every device of a report
//   R1  Bytes of the device = bytes of its rows (each byte once, innermost layer).
//   R2  Rows of one device and heap that have no stack are part of unknown_bytes.
//   R3  Bytes of the device = bytes of its categories, and of a row = bytes of the row's categories.
//   R4  A row's bytes never exceed the live bytes of its heap.
//   R5  Rows of what was there before an attach are of nothing else, and add up to it.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_REPORT_REPORT_H_
#define GMT_ANALYSIS_REPORT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/step_profile.h"
#include "analysis/categories/tensor_facts.h"
#include "analysis/examination/alive.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"
#include "analysis/examination/replay.h"
#include "analysis/report/all_time.h"
#include "analysis/report/allocator_report.h"
#include "analysis/report/allocators.h"
#include "analysis/report/before_matches.h"
#include "analysis/report/stream_report.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/before_attach.h"
#include "analysis/trace/device_use.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

enum class GroupBy {
  kStack,
  kFunction,
  kFile,
  kHeap,
  kThread,
  kStream,
  kSize,
  kLibrary,
  kCategory,
  kLayer,
  kDtype,  // the type of the tensor that a block was allocated for
  kNode    // the autograd node that saved it for its backward pass
};

// Rows are of lines of code: of a stack, or of the program's own frame in it.
bool IsByCode(GroupBy by);
// NOT_FOUND for a word that is none of them.
absl::StatusOr<GroupBy> ParseGroupBy(absl::string_view word);

// What rows of one function or file are called, after the program's own frame of their stacks; "" where
// it has no name. kFunction: Python's have their file behind them: many functions are called "forward".
std::string GroupLabel(GroupBy by, const FrameText& own);
// kLayer: of workspaces, which the layer that comes first takes for all.
inline constexpr char kWorkspacesLayer[] = "workspaces";
// kLibrary: of driver and host memory, after LibraryOf; of blocks, after their heap.
std::string LibraryLabel(const std::string& library);
std::string BlocksLabel(const std::string& heap);

struct ReportOptions {
  At at;
  GroupBy by = GroupBy::kStack;
  std::optional<int32_t> device;  // only this one
  std::string
      heap;       // only this one; empty: all. Its rows are then whole, not what inner layers leave
  Window window;  // for the peak and the counts
};

struct ReportHeap {
  std::string heap;
  uint64_t live_bytes = 0;  // at the device's instant
  uint64_t peak_live_bytes = 0;
  int64_t peak_live_t_ns = 0;
  // What the heap took from the layer below: a framework's segments. Driver and host memory come
  // from nowhere.
  std::optional<uint64_t> reserved_bytes, peak_reserved_bytes;
  int64_t peak_reserved_t_ns = 0;
  uint64_t allocations = 0, frees = 0;  // in the window
  // Of a framework's blocks, at the device's instant. Pending: freed, and awaiting a stream; may
  // await: freed at some time, and nobody knows whether that waited.
  uint64_t pending_bytes = 0, may_await_bytes = 0;
  // What the rounding of sizes adds, where all that was asked for is known.
  std::optional<uint64_t> rounding_bytes;
  // Where somebody attached: what the heap had then, how much of it was freed since, and what was freed
  // that nobody had told of.
  std::optional<HeldBefore> before;
};

struct ReportDevice {
  int32_t index = 0;                    // kHostDevice: host memory
  std::string name;                     // empty: not known
  std::optional<uint64_t> total_bytes;  // of the device's memory
  Instant at;
  uint64_t bytes = 0;       // at that instant: the sum of its rows
  uint64_t peak_bytes = 0;  // in the window, of what the options select
  int64_t peak_t_ns = 0;
  // Of that, what the program had asked for (IsAllocated() in analysis/examination/replay.h): at the instant, and
  // most of it in the window, which is the instant `peak`.
  uint64_t allocated_bytes = 0, peak_allocated_bytes = 0;
  int64_t peak_allocated_t_ns = 0;
  std::vector<ReportHeap> heaps;
  std::vector<CategoryUse> categories;  // most bytes first
};

struct ReportRow {
  std::string
      id;  // "stack/7", "stack/7+9" of a backward pass, "thread/11", ...: stable within a file
  int32_t device = 0;
  std::string heap;
  uint64_t bytes = 0;
  uint64_t count = 0;  // pieces of memory
  std::string label;   // what the row is grouped by, where that is no stack; a region's name
  std::vector<FrameText>
      frames;            // kStack, kFunction, kFile: of the group's biggest stack; innermost first
  bool unknown = false;  // no stack was recorded for it
  // kStack: of memory born in a backward pass, where the forward pass made the node it belongs to.
  std::vector<FrameText> forward_frames;
  bool recomputed = false;  // kStack: made again by checkpointing
  // Most bytes first: a line of code may allocate for several purposes.
  std::vector<CategoryUse> categories;
  std::vector<Alive> alive;  // why it is; most bytes first
  // kStack, kFunction, kFile: was there before somebody attached, and may be what this says.
  std::optional<BeforeGroup> before;
  std::string
      library;  // who took memory of the driver or host; "" of blocks, and where nobody knows
};

struct Report {
  std::vector<ReportDevice> devices;  // GPUs in order, then host memory
  std::vector<ReportRow> rows;        // most bytes first
  uint64_t unknown_bytes = 0;         // in rows without a stack
  GroupBy by = GroupBy::kStack;
  AllocatorReport allocator;
  std::vector<AllocatorUse> allocators;  // of the devices above
  std::vector<Room> rooms;               // of the GPUs above
  StreamReport streams;
  std::vector<DeviceUse> uses;        // of the devices above
  std::vector<StepProfile> profiles;  // of those that have a loop
  std::vector<TensorFacts> tensors;   // of those with tensors whose types and shapes are known
  std::optional<AllTime> all_time;    // where events of the start are kept no more
};

// NOT_FOUND where `at`, `device` or `heap` is not in the recording.
absl::StatusOr<Report> MakeReport(const Examination& examination, const Categories& categories,
                                  const ReportOptions& options);
// With the built-in rules for categories.
absl::StatusOr<Report> MakeReport(const Examination& examination, const ReportOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_REPORT_H_
