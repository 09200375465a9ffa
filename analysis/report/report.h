// analysis/report/report.h
//
// What holds the memory: the data behind `gpumemtrace report`, computed from one Replay.
//
// Invariants for every device of a report
//   R1  Bytes of the device = bytes of its rows (each byte once, innermost layer).
//   R2  Rows of one device and heap without a stack are part of unknown_bytes.
//   R3  Bytes of the device = bytes of its categories; bytes of a row = bytes of the row's
//       categories.
//   R4  A row's bytes never exceed the live bytes of its heap.
//   R5  A row for memory from before an attach contains nothing else; such rows add up to that
//       memory.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_REPORT_REPORT_H_
#define GMT_ANALYSIS_REPORT_REPORT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
#include "analysis/report/row_groups.h"
#include "analysis/report/stream_report.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/before_attach.h"
#include "analysis/trace/device_use.h"
#include "analysis/trace/trace.h"
#include "format/messages_fwd.h"

namespace gmt::analysis {

struct ReportOptions {
  At at;
  GroupBy by = GroupBy::kStack;
  std::optional<int32_t> device;  // only this one; kHostDevice: the host
  std::set<int32_t> without;      // not these
  // Only this one; empty: all. Rows of a selected heap are whole, not what inner layers leave.
  std::string heap;
  Window window;  // for the peak and the counts
  // The sums of the whole recording, for the counts and for peaks of heaps, if only the events
  // around the allocated peak have been read; or null. REQUIRES: no window.
  const Aggregates* sums = nullptr;
};

struct ReportHeap {
  std::string heap;
  uint64_t live_bytes = 0;  // at the device's instant
  uint64_t peak_live_bytes = 0;
  int64_t peak_live_t_ns = 0;
  // What the heap reserved from the layer below: a framework's segments. Not set for driver and
  // host memory.
  std::optional<uint64_t> reserved_bytes, peak_reserved_bytes;
  int64_t peak_reserved_t_ns = 0;
  uint64_t allocations = 0, frees = 0;  // in the window
  // Blocks of a framework at the device's instant. Pending: freed, awaiting a stream. May await:
  // freed earlier, and unknown whether that free had to wait.
  uint64_t pending_bytes = 0, may_await_bytes = 0;
  // The bytes added by rounding sizes, if all requested sizes are known.
  std::optional<uint64_t> rounding_bytes;
  // After an attach: what the heap held then, how much of it was freed since, and what was freed
  // that had not been reported.
  std::optional<HeldBefore> before;
};

struct ReportDevice {
  int32_t index = 0;                    // kHostDevice: host memory
  std::string name;                     // empty if unknown
  std::optional<uint64_t> total_bytes;  // of the device's memory
  Instant at;
  uint64_t bytes = 0;       // at that instant; equals the sum of its rows
  uint64_t peak_bytes = 0;  // in the window, of what the options select
  int64_t peak_t_ns = 0;
  // The part of these that the program had asked for (IsAllocated() in
  // analysis/examination/replay.h): at the instant, and its maximum in the window. The latter
  // defines the instant `peak`.
  uint64_t allocated_bytes = 0, peak_allocated_bytes = 0;
  int64_t peak_allocated_t_ns = 0;
  std::vector<ReportHeap> heaps;
  std::vector<CategoryUse> categories;  // most bytes first
};

struct ReportRow {
  // "stack/7", "stack/7+9" of a backward pass, "thread/11", ...: stable within a file.
  std::string id;
  int32_t device = 0;
  std::string heap;
  uint64_t bytes = 0;
  uint64_t count = 0;  // pieces of memory
  std::string label;   // the row's group, if that is not a stack; the name of a region
  // kStack, kFunction, kFile: of the group's biggest stack; innermost first.
  std::vector<FrameText> frames;
  bool unknown = false;  // no stack was recorded for it
  // kStack: for memory allocated in a backward pass, where the forward pass created its node.
  std::vector<FrameText> forward_frames;
  bool recomputed = false;  // kStack: recomputed by checkpointing
  // Most bytes first: a line of code may allocate for several purposes.
  std::vector<CategoryUse> categories;
  std::vector<Alive> alive;  // why it is alive; most bytes first
  // kStack, kFunction, kFile: set for memory from before an attach, with the guess what it may be.
  std::optional<BeforeGroup> before;
  // The library that allocated driver or host memory; "" for blocks, and if unknown.
  std::string library;
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
  std::vector<StepProfile> profiles;  // of devices that have a loop
  std::vector<TensorFacts> tensors;   // of devices with tensors of known type and shape
  std::optional<AllTime> all_time;    // set if the oldest events are no longer kept
};

// Returns NOT_FOUND if `at`, `device` or `heap` is not in the recording.
absl::StatusOr<Report> MakeReport(const Examination& examination, const Categories& categories,
                                  const ReportOptions& options);
// Adds the devices of another report about the same recording, with their rows. REQUIRES: it has
// none that `report` has.
void AddDevices(const Report& more, Report* report);
// Uses the built-in rules for categories.
absl::StatusOr<Report> MakeReport(const Examination& examination, const ReportOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_REPORT_H_
