// analysis/trace.h
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
//       totals are not added to each other; analysis/layers.h attributes each byte once, to the
//       innermost layer.
//   T4  Memory freed without a known allocation was held from before the recording (step 0).
//   T5  A free that the driver refused (free_done with an error) did not happen.
//   T6  An allocation at an address that is still held means that its free was lost: the old row
//   ends there.
//
// Ownership: owns all columns; ids of stacks and strings are those of the recording's Definitions.
// Thread safety: plain data.

#ifndef GMT_ANALYSIS_TRACE_H_
#define GMT_ANALYSIS_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/gmt.pb.h"

namespace gmt::analysis {

using RowId = uint32_t;
using Step = uint32_t;  // number of births and deaths that have happened

inline constexpr RowId kNoRow = UINT32_MAX;
inline constexpr Step kNever = UINT32_MAX;
inline constexpr int32_t kHostDevice = -1;

// Heaps by index in Trace::heaps; the first two always exist.
inline constexpr uint32_t kDriverHeap = 0;
inline constexpr uint32_t kHostHeap = 1;

enum RowFlags : uint8_t {
  kRowFromBefore = 1u << 0,   // held when the recording began
  kRowHoldsBlocks = 1u << 1,  // driver memory in which a framework's blocks were seen: a segment
  kRowHasStream = 1u << 2,
  kRowHasThread = 1u << 3,
  kRowHandle = 1u << 4,    // `address` is a handle (physical memory, array), not a place
  kRowFreeLost = 1u << 5,  // T6
  kRowUnbacked = 1u << 6,  // a block in no driver memory that is known
};

// Memory that was held, by row.
struct Rows {
  std::vector<uint64_t> address, size;
  std::vector<Step> birth, death;  // 0: from before; kNever: still held at the end
  std::vector<uint32_t> stack;     // 0: not known
  std::vector<uint64_t> stream;
  std::vector<uint32_t> thread;
  std::vector<int32_t> device;  // kHostDevice for host memory
  std::vector<uint16_t> heap;
  std::vector<uint8_t> memory;  // gmt::Memory
  std::vector<uint8_t> flags;   // RowFlags

  RowId count() const { return static_cast<RowId>(size.size()); }
  bool HeldAfter(RowId row, Step step) const { return birth[row] <= step && step < death[row]; }
};

// A range of addresses backed by physical memory (a row of kind handle).
struct Mapping {
  uint64_t address = 0, size = 0;
  RowId physical = kNoRow;  // kNoRow: created before the recording, or imported
  int32_t device = 0;
  Step birth = 0, death = kNever;  // after that many steps; maps and unmaps themselves are no steps

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

struct Trace {
  std::vector<std::string> heaps = {"driver", "host"};
  Rows rows;

  // Steps 1..n in order: step i+1 is steps[i].
  struct StepRecord {
    RowId row = kNoRow;  // kNoRow: undone (T5)
    bool is_death = false;
    int64_t t_ns = 0;
  };
  std::vector<StepRecord> steps;

  std::vector<Mapping> mappings;
  std::vector<FailedAllocation> failed;
  std::vector<NamedInstant> snapshots;
  std::vector<DeviceSample> samples;
  std::vector<Device> devices;  // as the recording names them
  Unknowns unknowns;
  Losses losses;
  int64_t start_unix_ns = 0;
  int64_t end_t_ns = 0;  // of the last event

  Step last_step() const { return static_cast<Step>(steps.size()); }
  int64_t TimeOf(Step step) const { return step == 0 ? 0 : steps[step - 1].t_ns; }
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_H_
