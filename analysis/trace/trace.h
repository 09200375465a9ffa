// analysis/trace/trace.h
//
// Trace: a recording's memory as columns: one row per piece of memory that was held, with its birth
// and its death. Every answer (report, diff, leaks, export) is computed from it; TraceBuilder
// creates it from events.
//
//   event        alloc A   alloc B   free A   alloc C   (context reset)
//   step            1         2         3        4        5      6      one per birth or death
//   row A         birth               death
//   row B                   birth                       death
//   row C                                      birth           death
//
// Steps order everything: after n steps, row r is held iff birth[r] <= n < death[r]. Each step has
// a time; two steps may share one.
//
// What counts as bytes
//   T1  Heap `driver`: device memory from alloc to free, and physical memory (VMM) from create
//       until it is both released and unmapped. Reservations and mappings are addresses, not bytes;
//       imported memory belongs to its exporter.
//   T2  Heap `host`: pinned and registered host memory. It is on no device.
//   T3  Any other heap (`pytorch`, `nvtx`, custom) consists of blocks that lie in driver memory.
//       Heaps are layers: their totals are not added to each other. Each byte is attributed once,
//       to the innermost layer (analysis/examination/layers.h).
//   T4  Memory freed without a known allocation was held before the recording began (step 0).
//   T5  A free that the driver refused (free_done with an error) did not happen.
//   T6  An allocation at an address that is still held means that its free was lost: the old row
//       ends there.
//   T7  A block is dead when its free is requested. Its allocator may reuse the address when the
//       free is completed: at once, or, if other streams use the block, when they are done.
//       docs/pytorch.md says how that is observed.
//
// Ownership: owns all columns; ids of stacks and strings refer to the recording's Definitions.
// Thread safety: plain data.

#ifndef GMT_ANALYSIS_TRACE_TRACE_H_
#define GMT_ANALYSIS_TRACE_TRACE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "analysis/trace/column.h"
#include "analysis/trace/cross_check_result.h"
#include "analysis/trace/memory_event.h"
#include "analysis/trace/outside_notes.h"
#include "analysis/trace/reconciliation.h"
#include "analysis/trace/run_facts.h"
#include "analysis/trace/stream_info.h"
#include "format/kinds.h"
#include "format/messages_fwd.h"

namespace gmt {
class LeakState;
}

namespace gmt::analysis {

using RowId = uint32_t;
using Step = uint32_t;  // number of births and deaths that have happened

inline constexpr RowId kNoRow = UINT32_MAX;
inline constexpr Step kNever = UINT32_MAX;
inline constexpr int64_t kNotDone = INT64_MAX;

enum RowFlags : uint16_t {
  kRowFromBefore = 1u << 0,  // held when the recording began
  // Driver memory that is a segment: a framework's blocks were seen in it, or the recording says
  // that it belongs to one of a framework's pools.
  kRowHoldsBlocks = 1u << 1,
  kRowHasStream = 1u << 2,
  kRowHasThread = 1u << 3,
  // `address` is a handle (physical memory, array) or unknown (0), not an address.
  kRowHandle = 1u << 4,
  kRowFreeLost = 1u << 5,  // T6
  kRowUnbacked = 1u << 6,  // a block that lies in no known driver memory
  // Its free waited for other streams; Trace::completions has when they were done.
  kRowAwaited = 1u << 7,
  // Its free may have waited for other streams; the recorded events do not show whether it did.
  kRowMayAwait = 1u << 8,
  kRowHasRequested = 1u << 9,
  kRowHasPool = 1u << 10,
  // Freed by a stream-ordered allocator: the free takes effect when the stream reaches it.
  kRowFreedInOrder = 1u << 11,
  // Allocated before the first kept part of the recording: its birth is known, its event is not
  // kept.
  kRowBornBefore = 1u << 12,
  // Held before gpumemtrace attached: the program reported it then, or it was freed since without
  // having been reported. The stack is unknown in both cases.
  kRowReportedBefore = 1u << 13,
  kRowUnreportedBefore = 1u << 14,
};

// Memory that was held, by row.
struct Rows {
  AddressColumn address;
  SizeColumn size;
  AscendingColumn birth;  // Step; 0: before the recording
  Column<Step> death;     // kNever: still held at the end
  // T7: how many steps after `death` the free was completed, or kNever. Use Completed().
  UniformColumn<Step> wait;
  SmallColumn stack;  // 0 if unknown
  // Where the forward pass created the node for which a backward pass allocated the block; 0: none.
  UniformColumn<uint32_t> forward_stack;
  CodedColumn<uint64_t> stream;
  CodedColumn<uint32_t> thread;
  CodedColumn<int32_t> device;  // kHostDevice for host memory
  UniformColumn<uint16_t> heap;
  UniformColumn<uint8_t> memory;  // gmt::Memory
  UniformColumn<uint16_t> flags;  // RowFlags

  // Rarely set: each of these columns ends with the last row that has a value. Use the accessors
  // below.
  SizeColumn requested_column;
  UniformColumn<uint64_t> pool_column;
  UniformColumn<uint32_t> name_column, scope_column;
  Column<uint32_t> free_stack_column;
  Column<int64_t> done_column;
  Column<int64_t> born_column;  // of rows of step 0 whose birth time is in a part's snapshot
  Column<uint32_t> dtype_column, shape_column;
  Column<uint8_t> roles_column;

  RowId count() const { return static_cast<RowId>(size.size()); }
  // Memory that the program itself declares in use, from any source (docs/nvtx.md). Not a
  // framework's block, but it may lie in one.
  bool IsRegion(RowId row) const { return memory[row] == REGION; }
  // A block of a framework's allocator.
  bool IsBlock(RowId row) const { return heap[row] > kHostHeap && !IsRegion(row); }
  bool HeldAfter(RowId row, Step step) const { return birth[row] <= step && step < death[row]; }
  void AddFlags(RowId row, uint16_t added) {
    flags.Set(row, static_cast<uint16_t>(flags[row] | added));
  }
  void RemoveFlags(RowId row, uint16_t removed) {
    flags.Set(row, static_cast<uint16_t>(flags[row] & ~removed));
  }
  // T7. Equals `death` if the free did not wait; kNever while it waits.
  Step Completed(RowId row) const {
    return death[row] == kNever || wait[row] == kNever ? kNever : death[row] + wait[row];
  }
  // REQUIRES: it is freed; `step` is not before that.
  void SetCompleted(RowId row, Step step) {
    wait.Set(row, step == kNever ? kNever : step - death[row]);
  }
  // Freed, but not yet reusable (T7).
  bool PendingAfter(RowId row, Step step) const {
    return death[row] <= step && step < Completed(row);
  }
  // The requested bytes, if `size` is rounded.
  std::optional<uint64_t> Requested(RowId row) const {
    if ((flags[row] & kRowHasRequested) == 0) return std::nullopt;
    return requested_column[row];
  }
  // A framework's private pool, or a stream-ordered one.
  std::optional<uint64_t> Pool(RowId row) const {
    if ((flags[row] & kRowHasPool) == 0) return std::nullopt;
    return pool_column[row];
  }
  // When the work that its stream had been given before the free was known to be done; it was done
  // at that time or before (docs/streams.md).
  std::optional<int64_t> DoneAt(RowId row) const {
    if (row >= done_column.size() || done_column[row] == kNotDone) return std::nullopt;
    return done_column[row];
  }
  // When a row of step 0 was allocated, if that was before the kept events.
  std::optional<int64_t> BornBefore(RowId row) const {
    if ((flags[row] & kRowBornBefore) == 0) return std::nullopt;
    return born_column[row];
  }
  // All roles that PyTorch reported for it at any time: bits of format::Role. Trace::role_changes
  // has the times.
  uint32_t Roles(RowId row) const { return row < roles_column.size() ? roles_column[row] : 0; }
  // Type and shape of the tensor for which it was allocated; string ids, 0 if unknown.
  uint32_t Dtype(RowId row) const { return At(dtype_column, row); }
  uint32_t Shape(RowId row) const { return At(shape_column, row); }
  // Ids of a stack and of strings; 0 if none.
  uint32_t FreeStack(RowId row) const { return At(free_stack_column, row); }
  uint32_t Name(RowId row) const { return At(name_column, row); }  // the program's label for it
  // A framework's: compiled region.
  uint32_t Scope(RowId row) const { return At(scope_column, row); }

 private:
  template <typename Values>
  static uint32_t At(const Values& column, RowId row) {
    return row < column.size() ? column[row] : 0;
  }
};

// The end of a wait (T7). It is not a step: it happened after `step` steps and before the next.
struct Completion {
  RowId row = kNoRow;
  Step step = 0;
  int64_t t_ns = 0;
  uint32_t stack = 0;  // if the recording reports the completion with a stack
};

// A range of addresses backed by physical memory (a row with kRowHandle).
struct Mapping {
  uint64_t address = 0, size = 0;
  RowId physical = kNoRow;  // kNoRow: created before the recording, or imported
  int32_t device = 0;
  Step birth = 0, death = kNever;  // counted in steps; mapping and unmapping are not steps
                                   // themselves
  int64_t birth_t_ns = 0, death_t_ns = INT64_MAX;
  uint32_t stack = 0, unmap_stack = 0;
  uint64_t stream = 0;
  bool has_stream = false;

  bool HeldAfter(Step step) const { return birth <= step && step < death; }
};

struct FailedAllocation {
  Step step = 0;
  int64_t t_ns = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t stack = 0;
  int32_t device = 0;
  uint32_t heap = 0;
  uint32_t result = 0;
  uint32_t forward_stack = 0;
  uint32_t thread = 0;
  // Type and shape of the tensor for which it was requested; string ids, 0 if unknown.
  uint32_t dtype = 0, shape = 0;
  // As reported by the framework's allocator.
  std::optional<uint64_t> total_allocated, total_reserved;
  // Free memory of the device, as last reported by the driver.
  std::optional<uint64_t> driver_free;
};

// A driver call that acquired or returned device memory or its mapping, in order. Kept for
// determining what a framework's allocator did; empty without a framework's blocks.
struct DriverCall {
  Kind kind = KIND_UNSPECIFIED;  // ALLOC, ALLOC_FAILED, FREE, CREATE, RELEASE, MAP, UNMAP
  RowId row = kNoRow;            // the memory; of a MAP the physical memory; kNoRow if unknown
  Step step = 0;
  int64_t t_ns = 0;  // at the end of an acquisition, at the beginning of a return
  uint64_t duration_ns = 0;
  uint64_t address = 0, size = 0;
  uint32_t stack = 0, thread = 0;
  int32_t device = 0;
  uint32_t failed = 0;  // number of entries of Trace::failed up to and including its own

  bool is_return() const { return kind == FREE || kind == RELEASE || kind == UNMAP; }
  int64_t begin_ns() const { return is_return() ? t_ns : t_ns - static_cast<int64_t>(duration_ns); }
  int64_t end_ns() const { return is_return() ? t_ns + static_cast<int64_t>(duration_ns) : t_ns; }
};

// From a RANGE_BEGIN to its RANGE_END, on the same thread or not. If the beginning was not seen,
// the range began before the recording or in a gap.
struct Range {
  std::string name;
  Step begin = 0, end = kNever;  // kNever: open at the end
  int64_t begin_t_ns = INT64_MIN, end_t_ns = INT64_MAX;
  uint32_t thread = 0;
  uint32_t stack = 0;   // where it began
  uint32_t text = 0;    // string id
  uint32_t domain = 0;  // string id of the domain that owns the name (NVTX); 0 if none
  std::optional<int32_t> device;
};

struct Mark {
  std::string name;
  std::optional<uint64_t> index;
  Step step = 0;
  int64_t t_ns = 0;
  uint32_t thread = 0;
  uint32_t stack = 0;
};

// An action of an allocator that an event of the recording reports.
// analysis/examination/allocator_actions.h infers those that no event reports.
struct RecordedAction {
  uint32_t action = 0, name = 0;  // string ids
  std::optional<int32_t> device;
  uint32_t heap = 0;
  uint64_t stream = 0, object = 0, value = 0;
  uint32_t stack = 0, thread = 0;
  Step step = 0;
  int64_t t_ns = 0;
};

// A stream capture: work submitted during it becomes a graph. A framework allocates the memory for
// it from a private pool of the graph.
struct Capture {
  uint64_t stream = 0;
  uint32_t thread = 0;           // that began it
  Step begin = 0, end = kNever;  // covers births in begin+1..end; kNever: still open at the end
  int64_t begin_t_ns = 0, end_t_ns = INT64_MAX;

  bool IsUnderWayAt(int64_t t_ns) const { return begin_t_ns <= t_ns && t_ns < end_t_ns; }
};

struct NamedInstant {
  std::string name;
  Step step = 0;
  int64_t t_ns = 0;
};

struct DeviceSample {
  Step step = 0;
  int64_t t_ns = 0;
  int32_t device = 0;
  uint64_t used_bytes = 0, total_bytes = 0;
  std::optional<uint64_t> free_bytes;
  std::string source;  // "nvml", "cudaMemGetInfo"
  std::optional<uint64_t> reserved_bytes;
  // Bytes of this process and of the others, if the source distinguishes processes and lists ours.
  std::optional<uint64_t> process_bytes, others_bytes;
  // All processes that the source lists, including ours.
  struct Process {
    uint64_t pid = 0;
    std::optional<uint64_t> bytes;  // nullopt: the source does not report how much
    std::string name;
  };
  std::vector<Process> processes;

  // False if only `free_bytes` is known.
  bool knows_use() const { return used_bytes > 0 || total_bytes > 0; }
};

// A change of the roles that PyTorch reports for a row. It is not a step.
struct RoleChange {
  RowId row = kNoRow;
  Step step = 0;       // it happened after this many steps and before the next
  uint32_t roles = 0;  // bits of format::Role
  // The node that saves it: the stack of the forward pass that created it, and its class (string
  // id); 0 if unknown, or if no further node saves it.
  uint32_t stack = 0, node = 0;
};

// An event that is not a step. Side events are in the order of the recording: after `step` steps
// and all side events before it. `index` refers to the list that `kind` names.
struct SideEvent {
  enum Kind : uint8_t {
    kMap,         // mappings
    kUnmap,       // mappings
    kFailed,      // failed
    kCompleted,   // completions
    kSnapshot,    // snapshots
    kSample,      // samples
    kMark,        // marks
    kRangeBegin,  // ranges
    kRangeEnd,    // ranges
    kAction,      // actions
  };
  Kind kind = kMap;
  uint32_t index = 0;
  Step step = 0;
  int64_t t_ns = 0;
};

// What the recording could not determine, as far as the events show it.
struct Unknowns {
  uint64_t rows_from_before = 0;  // T4
  uint64_t frees_unmatched = 0;   // frees of unknown memory after a gap, or without a size
  uint64_t frees_lost = 0;        // T6
  uint64_t gaps = 0;              // places where events are missing
  uint64_t events_missing = 0;    // in those gaps, as far as counted
  uint64_t resets_unscoped = 0;   // context resets that name neither context nor device
};

// A birth or a death.
struct StepRecord {
  RowId row = kNoRow;  // kNoRow: undone (T5)
  bool is_death = false;
  int64_t t_ns = 0;
};

// All births and deaths in order: step i+1 has index i.
class Steps {
 public:
  using value_type = StepRecord;
  using const_iterator = ColumnIterator<Steps>;

  // Inlined, so that a walk that ignores times does not read them.
  ABSL_ATTRIBUTE_ALWAYS_INLINE StepRecord operator[](size_t index) const {
    const uint32_t packed = rows_[index];
    const uint32_t row = packed & kRowMask;
    return {row == kRowMask ? kNoRow : row, (packed & kDeath) != 0, times_[index]};
  }
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  int64_t TimeOf(size_t index) const { return times_[index]; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

  // REQUIRES: step.row < 2^31 - 1.
  void push_back(const StepRecord& step) {
    rows_.push_back((step.row & kRowMask) | (step.is_death ? kDeath : 0));
    times_.push_back(step.t_ns);
  }
  // Keeps the step, but without a row.
  void Undo(size_t index) { rows_[index] |= kRowMask; }

 private:
  static constexpr uint32_t kDeath = uint32_t{1} << 31, kRowMask = kDeath - 1;

  Column<uint32_t> rows_;
  TimeColumn times_;
};

struct Trace {
  std::vector<std::string> heaps = {"driver", "host"};
  Rows rows;
  // Whether rows are in the order of their births, with rows from before the recording among them.
  // False only if a snapshot contained rows whose events arrived later.
  bool rows_by_birth = true;

  Steps steps;

  std::vector<Mapping> mappings;
  std::vector<Completion> completions;  // in order; of rows with kRowAwaited
  std::vector<FailedAllocation> failed;
  std::vector<DriverCall> driver_calls;
  std::vector<StreamInfo> streams;  // in the order in which they were seen
  std::vector<Capture> captures;    // ordered by beginning
  std::vector<HostCost> host_costs;
  CrossCheckResult cross_check;
  std::vector<Range> ranges;  // ordered by beginning
  std::vector<Mark> marks;
  std::vector<RecordedAction> actions;
  std::vector<RoleChange> role_changes;  // in order
  std::vector<NamedInstant> snapshots;
  std::vector<NamedInstant> gaps;  // where events are missing; names are empty
  std::vector<DeviceSample> samples;
  OutsideNotes outside;
  std::vector<SideEvent> side_events;
  std::vector<GpuFacts> devices;  // as named in the recording
  std::vector<NamedText> settings, libraries;
  std::vector<NamedText> sources;  // of events: "cupti", ...: "on", or why not
  std::vector<std::string> argv;   // of the process
  std::optional<int32_t> rank, local_rank, world_size;
  std::vector<Reconciliation> reconciliations;  // by heap and device
  Unknowns unknowns;
  std::shared_ptr<const Losses> losses;  // null if the recording reports none
  // The state of the collector's leak detector when it wrote the recording, and the time from which
  // events are kept: a recording may have details of its last hour only.
  std::shared_ptr<const LeakState> leak_state;
  std::optional<int64_t> first_t_ns;  // of the first event
  std::string imported_from;          // empty if recorded, not imported
  uint64_t pid = 0;                   // of the process; 0 if unknown
  std::string hostname;               // name of its machine; empty if unknown
  std::string run_id;  // shared by the processes of one `gpumemtrace run`; empty if there is none
  int64_t start_unix_ns = 0;
  int64_t end_t_ns = 0;  // of the last event
  // For a recording whose older parts were deleted: its totals before its first event here, at
  // before->t_ns() (docs/long-runs.md).
  std::shared_ptr<const Aggregates> before;

  Step last_step() const { return static_cast<Step>(steps.size()); }
  int64_t TimeOf(Step step) const { return step == 0 ? 0 : steps.TimeOf(step - 1); }
};

// Calls visit(step, row) for each birth after step 0, in order. Twice as fast as a walk over all
// steps, which suffers from mispredicted branches on deaths.
template <typename Visit>
void ForEachBirth(const Trace& trace, Visit visit) {
  if (trace.rows_by_birth) {
    const AscendingColumn& births = trace.rows.birth;
    for (RowId row = 0; row < trace.rows.count(); ++row) {
      if (births[row] != 0) visit(births[row], row);
    }
    return;
  }
  for (Step step = 1; step <= trace.last_step(); ++step) {
    const StepRecord record = trace.steps[step - 1];
    if (record.row != kNoRow && !record.is_death) visit(step, record.row);
  }
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_TRACE_H_
