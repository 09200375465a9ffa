// analysis/trace/trace.h
//
// Trace: what a recording says about memory, as columns: one row per piece of memory that was held,
// with its birth and its death. Every answer (report, diff, leaks, export) is computed from it;
// TraceBuilder makes it from events.
//
//   event        alloc A   alloc B   free A   alloc C   (context reset)
//   step              1         2        3         4         5      6          one step per birth
//   or death row A   birth     1   death          3 row B   birth               2 death 5 row C
//   birth                                  4   death        6
//
// Steps order everything: after n steps, row r is held iff birth[r] <= n < death[r]. Time is a
// property of a step; two steps may share one.
//
// What counts as bytes
//   T1  Heap `driver`: device memory from alloc to free, and physical memory (VMM) from create
//   until it is both released and
//       unmapped. Reservations and mappings are addresses, not bytes; imported memory belongs to
//       its exporter.
//   T2  Heap `host`: pinned and registered host memory. It is on no device.
//   T3  Any other heap (`pytorch`, `nvtx`, custom) consists of blocks that lie in driver memory.
//   Heaps are layers: their
//       totals are not added to each other; analysis/examination/layers.h attributes each byte once, to the
//       innermost layer.
//   T4  Memory freed without a known allocation was held from before the recording (step 0).
//   T5  A free that the driver refused (free_done with an error) did not happen.
//   T6  An allocation at an address that is still held means that its free was lost: the old row
//   ends there.
//   T7  A block is dead when its free was asked for. Its allocator may give the place out again once
//       the free is completed: at once, or, where other streams use the block, when they are done.
//       docs/pytorch.md says how that is seen.
//
// Ownership: owns all columns; ids of stacks and strings are those of the recording's Definitions.
// Thread safety: plain data.

#ifndef GMT_ANALYSIS_TRACE_TRACE_H_
#define GMT_ANALYSIS_TRACE_TRACE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/trace/column.h"
#include "analysis/trace/cross_check_result.h"
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
inline constexpr int32_t kHostDevice = -1;
inline constexpr int64_t kNotDone = INT64_MAX;

// Heaps by index in Trace::heaps; the first two always exist.
inline constexpr uint32_t kDriverHeap = 0;
inline constexpr uint32_t kHostHeap = 1;

enum RowFlags : uint16_t {
  kRowFromBefore = 1u << 0,  // held when the recording began
  // Driver memory in which a framework's blocks were seen, or that the recording says is of one of
  // its pools: a segment.
  kRowHoldsBlocks = 1u << 1,
  kRowHasStream = 1u << 2,
  kRowHasThread = 1u << 3,
  kRowHandle = 1u << 4,    // `address` is a handle (physical memory, array), not a place
  kRowFreeLost = 1u << 5,  // T6
  kRowUnbacked = 1u << 6,  // a block in no driver memory that is known
  kRowAwaited =
      1u << 7,  // its free waited for other streams; Trace::completions has when they were done
  kRowMayAwait =
      1u << 8,  // its free may have waited for other streams: what was seen leaves it open
  kRowHasRequested = 1u << 9,
  kRowHasPool = 1u << 10,
  kRowFreedInOrder =
      1u << 11,  // of a stream-ordered allocator: the stream comes to it when it does
  // From before the first part that is kept: its birth is known, its event is not kept.
  kRowBornBefore = 1u << 12,
  // Of what was held before somebody attached to the program: the program told of it then, or it was
  // freed since and nobody had told. No stack is known of either.
  kRowToldBefore = 1u << 13,
  kRowUntoldBefore = 1u << 14,
};

// The API of events that tell of memory from before an attach.
inline constexpr char kBeforeAttachApi[] = "(before attach)";

// Memory that was held, by row.
struct Rows {
  Column<uint64_t> address, size;
  Column<Step> birth, death;  // 0: from before; kNever: still held at the end
  // T7. death wherever nothing was waited for; kNever while something is.
  Column<Step> completed;
  Column<uint32_t> stack;          // 0: not known
  Column<uint32_t> forward_stack;  // of a block born in a backward pass; 0: none
  CodedColumn<uint64_t> stream;
  CodedColumn<uint32_t> thread;
  CodedColumn<int32_t> device;  // kHostDevice for host memory
  Column<uint16_t> heap;
  Column<uint8_t> memory;  // gmt::Memory
  Column<uint16_t> flags;  // RowFlags

  // Few recordings have these: the columns end with the last row that does. Ask for them below.
  Column<uint64_t> requested_column, pool_column;
  Column<uint32_t> free_stack_column, name_column, scope_column;
  Column<int64_t> done_column;
  Column<int64_t> born_column;  // of rows of step 0 whose birth a part's snapshot tells
  Column<uint32_t> dtype_column, shape_column;
  Column<uint8_t> roles_column;

  RowId count() const { return static_cast<RowId>(size.size()); }
  // Memory that the program itself says it uses, wherever it has it from (docs/nvtx.md). No
  // framework's block: it may lie in one.
  bool IsRegion(RowId row) const { return memory[row] == REGION; }
  bool HeldAfter(RowId row, Step step) const { return birth[row] <= step && step < death[row]; }
  // Freed, and not to be used again yet (T7).
  bool PendingAfter(RowId row, Step step) const {
    return death[row] <= step && step < completed[row];
  }
  // Bytes that were asked for, where `size` is rounded.
  std::optional<uint64_t> Requested(RowId row) const {
    if ((flags[row] & kRowHasRequested) == 0) return std::nullopt;
    return requested_column[row];
  }
  // A framework's private pool, or a stream-ordered one.
  std::optional<uint64_t> Pool(RowId row) const {
    if ((flags[row] & kRowHasPool) == 0) return std::nullopt;
    return pool_column[row];
  }
  // When the work that its stream had been given before the free was known to be done: at that time
  // or before (docs/streams.md).
  std::optional<int64_t> DoneAt(RowId row) const {
    if (row >= done_column.size() || done_column[row] == kNotDone) return std::nullopt;
    return done_column[row];
  }
  // When a row of step 0 was allocated, before the events that are kept begin.
  std::optional<int64_t> BornBefore(RowId row) const {
    if ((flags[row] & kRowBornBefore) == 0) return std::nullopt;
    return born_column[row];
  }
  // What PyTorch itself said that it is for, at any time: bits of format::Role. Trace::role_changes
  // has when.
  uint32_t Roles(RowId row) const { return row < roles_column.size() ? roles_column[row] : 0; }
  // Type and shape of the tensor that it was taken for; ids of strings, 0: not known.
  uint32_t Dtype(RowId row) const { return At(dtype_column, row); }
  uint32_t Shape(RowId row) const { return At(shape_column, row); }
  // Ids of a stack and of strings; 0: none.
  uint32_t FreeStack(RowId row) const { return At(free_stack_column, row); }
  uint32_t Name(RowId row) const { return At(name_column, row); }  // the program's label for it
  uint32_t Scope(RowId row) const {
    return At(scope_column, row);
  }  // a framework's: compiled region

 private:
  static uint32_t At(const Column<uint32_t>& column, RowId row) {
    return row < column.size() ? column[row] : 0;
  }
};

// The end of a wait (T7). It is no step: it happened after `step` steps and before the next.
struct Completion {
  RowId row = kNoRow;
  Step step = 0;
  int64_t t_ns = 0;
  uint32_t stack = 0;  // where a recording states the completion with one
};

// A range of addresses backed by physical memory (a row of kind handle).
struct Mapping {
  uint64_t address = 0, size = 0;
  RowId physical = kNoRow;  // kNoRow: created before the recording, or imported
  int32_t device = 0;
  Step birth = 0, death = kNever;  // after that many steps; maps and unmaps themselves are no steps
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
  // What a framework's allocator said of itself.
  std::optional<uint64_t> total_allocated, total_reserved;
  // Of the device, as the driver had said last.
  std::optional<uint64_t> driver_free;
};

// A call of the driver that took or gave back device memory or its mapping, in order. Kept for who
// asks what a framework's allocator did; without a framework's blocks there are none.
struct DriverCall {
  Kind kind = KIND_UNSPECIFIED;  // ALLOC, ALLOC_FAILED, FREE, CREATE, RELEASE, MAP, UNMAP
  RowId row = kNoRow;            // of the memory, of a MAP the physical memory; kNoRow: not known
  Step step = 0;
  int64_t t_ns = 0;  // at the end of an acquisition, at the beginning of a return
  uint64_t duration_ns = 0;
  uint64_t address = 0, size = 0;
  uint32_t stack = 0, thread = 0;
  int32_t device = 0;
  uint32_t failed = 0;  // entries of Trace::failed before it, its own among them

  bool is_return() const { return kind == FREE || kind == RELEASE || kind == UNMAP; }
  int64_t begin_ns() const { return is_return() ? t_ns : t_ns - static_cast<int64_t>(duration_ns); }
  int64_t end_ns() const { return is_return() ? t_ns + static_cast<int64_t>(duration_ns) : t_ns; }
};

// From a RANGE_BEGIN to its RANGE_END, of the same thread or not. Where no beginning was seen, it is
// from before the recording or lay in a gap.
struct Range {
  std::string name;
  Step begin = 0, end = kNever;  // kNever: open at the end
  int64_t begin_t_ns = INT64_MIN, end_t_ns = INT64_MAX;
  uint32_t thread = 0;
  uint32_t stack = 0;   // where it began
  uint32_t text = 0;    // string
  uint32_t domain = 0;  // string: whose name it is (NVTX); 0: nobody's in particular
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

// What an allocator did, as an event of the recording tells it. analysis/examination/allocator_actions.h finds
// out what no event tells.
struct ToldAction {
  uint32_t action = 0, name = 0;  // strings
  std::optional<int32_t> device;
  uint32_t heap = 0;
  uint64_t stream = 0, object = 0, value = 0;
  uint32_t stack = 0, thread = 0;
  Step step = 0;
  int64_t t_ns = 0;
};

// What a stream is given in it becomes a graph. A framework takes the memory for that from a pool of
// the graph's own.
struct Capture {
  uint64_t stream = 0;
  uint32_t thread = 0;           // that began it
  Step begin = 0, end = kNever;  // what was born in it: begin+1..end; kNever: under way at the end
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
  // Of this process and of the others, where the source tells processes apart and ours is among them.
  std::optional<uint64_t> process_bytes, others_bytes;
  // All that the source lists, ours among them.
  struct Process {
    uint64_t pid = 0;
    std::optional<uint64_t> bytes;  // nullopt: the source does not say how much
    std::string name;
  };
  std::vector<Process> processes;
};

// What PyTorch says that a row is for, from then on. It is no step.
struct RoleChange {
  RowId row = kNoRow;
  Step step = 0;       // it happened after so many, and before the next
  uint32_t roles = 0;  // bits of format::Role
  // The node that saves it: the stack of the forward pass that made it, and its class, a string; 0:
  // not known, or no further node does.
  uint32_t stack = 0, node = 0;
};

// What happened and is no step, in the order of the events: behind `step` steps and all asides
// before it. `index` is that of the list that its kind names.
struct Aside {
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

// What the recording could not say, as far as the events show it.
struct Unknowns {
  uint64_t rows_from_before = 0;  // T4
  uint64_t frees_unmatched = 0;   // frees of unknown memory behind a gap, or without a size
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

// All births and deaths in order: step i+1 is [i].
class Steps {
 public:
  using value_type = StepRecord;
  using const_iterator = ColumnIterator<Steps>;

  StepRecord operator[](size_t index) const {
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
  // The step stays, without a row.
  void Undo(size_t index) { rows_[index] |= kRowMask; }

 private:
  static constexpr uint32_t kDeath = uint32_t{1} << 31, kRowMask = kDeath - 1;

  Column<uint32_t> rows_;
  TimeColumn times_;
};

struct Trace {
  std::vector<std::string> heaps = {"driver", "host"};
  Rows rows;
  // Rows stand in the order of their births, those from before between them; all but the few whose
  // events a snapshot ran ahead of, and then this is false.
  bool rows_by_birth = true;

  Steps steps;

  std::vector<Mapping> mappings;
  std::vector<Completion> completions;  // in order; of rows with kRowAwaited
  std::vector<FailedAllocation> failed;
  std::vector<DriverCall> driver_calls;
  std::vector<StreamInfo> streams;  // in the order in which they were seen
  std::vector<Capture> captures;    // by their beginning
  std::vector<HostCost> host_costs;
  CrossCheckResult cross_check;
  std::vector<Range> ranges;  // by their beginning
  std::vector<Mark> marks;
  std::vector<ToldAction> actions;
  std::vector<RoleChange> role_changes;  // in order
  std::vector<NamedInstant> snapshots;
  std::vector<NamedInstant> gaps;  // where events are missing; without names
  std::vector<DeviceSample> samples;
  OutsideNotes outside;
  std::vector<Aside> asides;
  std::vector<GpuFacts> devices;  // as the recording names them
  std::vector<NamedText> settings, libraries;
  std::vector<std::string> argv;  // of the process
  std::optional<int32_t> rank, local_rank, world_size;
  std::vector<Reconciliation> reconciliations;  // by heap and device
  Unknowns unknowns;
  std::shared_ptr<const Losses> losses;  // null: the recording states none
  // What the program's collector had found out of leaks when it wrote this, and since when there are
  // events: a recording may have details of its last hour alone.
  std::shared_ptr<const LeakState> leak_state;
  std::optional<int64_t> first_t_ns;  // of the first event
  std::string imported_from;          // empty: recorded
  uint64_t pid = 0;                   // of the process; 0: not known
  int64_t start_unix_ns = 0;
  int64_t end_t_ns = 0;  // of the last event
  // Of a recording whose older parts are gone: what it came to before its first event here, at
  // before->t_ns() (docs/long-runs.md).
  std::shared_ptr<const Aggregates> before;

  Step last_step() const { return static_cast<Step>(steps.size()); }
  int64_t TimeOf(Step step) const { return step == 0 ? 0 : steps.TimeOf(step - 1); }
};

// Calls visit(step, row) for each birth behind step 0, in order. Twice as fast as a walk over all steps:
// nobody can foretell which of those are deaths.
template <typename Visit>
void ForEachBirth(const Trace& trace, Visit visit) {
  if (trace.rows_by_birth) {
    const Column<Step>& births = trace.rows.birth;
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
