// analysis/whatif/program_change.h
//
// ProgramChange: what a changed program would hold on one device, and when. Every row of the
// recording is held as it was, unless a change says otherwise; a row that is recomputed is held
// twice.
//
//   recorded     |-------- row 7, 8 MiB --------|
//   bfloat16     |-------- row 7, 4 MiB --------|
//   checkpoint   |--8 MiB--|          |--8 MiB--|
//
//   ProgramChange change(trace, 0);
//   change.Set(7, {{birth, forward_end, 8 * kMiB}, {recomputed, death, 8 * kMiB}});
//   change.FindPeak();                    // the highest moment of the changed program
//   ChangedHistory(history, change);      // its requests, to be replayed
//
// The saving of a change is the difference of the peaks: what it frees at the moment of the
// recorded peak is at least that much, because another moment may then be the peak.
//
// Changes are applied one after the other, each to what the previous ones left. So no byte is saved
// twice.
//
// Ownership: the trace must outlive it. Thread safety: one thread at a time.
// Cost: of a peak, one walk over rows and steps.

#ifndef GMT_ANALYSIS_WHATIF_PROGRAM_CHANGE_H_
#define GMT_ANALYSIS_WHATIF_PROGRAM_CHANGE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "analysis/trace/trace.h"
#include "analysis/whatif/allocator_history.h"

namespace gmt::analysis {

// Bytes that are held after the steps begin, begin + 1, ... end - 1.
struct Holding {
  Step begin = 0, end = kNever;
  uint64_t bytes = 0;

  friend bool operator==(const Holding&, const Holding&) = default;
};
using Holdings = absl::InlinedVector<Holding, 2>;

class ProgramChange {
 public:
  ProgramChange(const Trace& trace, int32_t device) : trace_(trace), device_(device) {}

  const Trace& trace() const { return trace_; }
  int32_t device() const { return device_; }

  // What is held for a row; one holding if no change concerns it, none if it is not allocated.
  Holdings Of(RowId row) const;
  // Holdings that are empty are dropped.
  void Set(RowId row, const Holdings& holdings);
  // Sets what each holding of the row has to bytes(what it has).
  template <typename Bytes>
  void Resize(RowId row, Bytes bytes) {
    Holdings holdings = Of(row);
    for (Holding& holding : holdings) holding.bytes = bytes(holding.bytes);
    Set(row, holdings);
  }
  // Memory that the recorded program does not have.
  void Add(const Holding& holding);

  // Takes the place of this change. REQUIRES: the same trace and device.
  void Replace(ProgramChange&& other) {
    changed_ = std::move(other.changed_);
    added_ = std::move(other.added_);
  }

  bool is_empty() const { return changed_.empty() && added_.empty(); }
  const absl::flat_hash_map<RowId, Holdings>& changed() const { return changed_; }
  const std::vector<Holding>& added() const { return added_; }

  // The most that the program asks for at one moment (Replay's allocated peak).
  struct Peak {
    uint64_t bytes = 0;
    Step step = 0;
  };
  Peak FindPeak() const;
  // Bytes after the given number of steps.
  uint64_t HeldAt(Step step) const;

 private:
  template <typename Visit>
  void ForEachHolding(Visit visit) const;

  const Trace& trace_;
  const int32_t device_;
  absl::flat_hash_map<RowId, Holdings> changed_;
  std::vector<Holding> added_;
};

// The requests of the changed program, in order. Blocks that exist when the recording begins keep
// their size. REQUIRES: the history is of the trace and the device of the change.
AllocatorHistory ChangedHistory(const AllocatorHistory& history, const ProgramChange& change);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_PROGRAM_CHANGE_H_
