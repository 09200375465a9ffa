// analysis/ledger/ledger.h
//
// Ledger: the driver's figure for a device as a sum of rows that a user can act on.
//
//   driver's figure = this process (live blocks, cached, holes, graph pools, libraries, other
//                     allocations, contexts and modules, CUPTI) + other processes + unexplained
//
// Invariants
//   L1  Rows and unexplained_bytes add up to driver_used_bytes. unexplained_bytes is what no row
//       explains; it is negative if more was recorded than the driver reports.
//   L2  The rows of kReserved are those of analysis/fragmentation/fragmentation.h: live blocks, and
//       the causes for which the rest is free.
//   L3  A reading of the driver has its own time. What was recorded between that time and the
//       requested one is added to it: driver_used_bytes = reading_used_bytes + recorded_since.
//
// Memory that belongs to no allocation is derived from the readings. A process's figure includes
// its contexts and code: that is the unrecorded part present after the program has warmed up. Later
// growth that no event explains is unexplained.
//
// Thread safety: pure functions. Cost: a walk over the rows, and one over the steps.

#ifndef GMT_ANALYSIS_LEDGER_LEDGER_H_
#define GMT_ANALYSIS_LEDGER_LEDGER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"

namespace gmt::analysis {

enum class LedgerGroup : uint8_t {
  kReserved,          // this process, in a framework's segments
  kOutsideFramework,  // this process, outside them
  // This process's contexts and all other processes, if the source does not distinguish them.
  kNotApart,
  kOtherProcess,
  kSystem,  // reserved by driver and firmware for themselves
};

// "reserved", "outside_framework", "not_apart", "other_process", "system".
std::string_view NameOf(LedgerGroup group);

struct LedgerRow {
  std::string name;  // "live blocks", "NCCL", "context and modules", "process 41388", ...
  uint64_t bytes = 0;
  LedgerGroup group = LedgerGroup::kReserved;
  bool is_live = false;        // of kReserved: blocks in use
  bool releasable = false;     // empty_cache() would release it now
  std::string known_by;        // "events", "nvml", ...
  std::string detail;          // the stack's own frame or a process's name; may be empty
  uint64_t count = 0;          // number of allocations; 0 if it does not consist of allocations
  uint32_t stack = 0;          // of most of it; 0 if none
  uint64_t private_bytes = 0;  // of "graph pools": all of those pools, including live blocks
};

// Memory that may not be on the device, or belongs to another process. Not part of the sum.
struct NotCounted {
  std::string name;
  uint64_t bytes = 0;
  std::string why;
};

struct Ledger {
  int32_t device = 0;
  Instant at;
  std::string source;  // of the driver's figure: "nvml", "cudaMemGetInfo"; "" if there is none
  uint64_t driver_used_bytes = 0;  // without a source: the sum of the rows
  std::optional<uint64_t> total_bytes;
  std::vector<LedgerRow> rows;  // by group; in kReserved as above, otherwise most bytes first
  int64_t unexplained_bytes = 0;
  int64_t unexplained_in_process = 0;  // part of that, if the source distinguishes processes
  // The source's figure for this process, at `at`; nullopt if it does not distinguish processes.
  std::optional<uint64_t> reported_process_bytes;
  std::vector<NotCounted> not_counted;
  // The reading (L3); 0 without a source.
  int64_t reading_t_ns = 0;
  uint64_t reading_used_bytes = 0;
  int64_t recorded_since = 0;

  uint64_t bytes_of(LedgerGroup group) const {
    uint64_t sum = 0;
    for (const LedgerRow& row : rows) {
      if (row.group == group) sum += row.bytes;
    }
    return sum;
  }
  // What certainly belongs to this process.
  uint64_t process_bytes() const {
    return bytes_of(LedgerGroup::kReserved) + bytes_of(LedgerGroup::kOutsideFramework);
  }
};

struct LedgerOptions {
  At at;
  std::optional<int32_t> device;
};

// Sorted by device; only devices that have memory or were read. Returns NOT_FOUND if `at` or
// `device` is not in the recording.
absl::StatusOr<std::vector<Ledger>> MakeLedgers(const Examination& examination,
                                                const LedgerOptions& options);
Ledger LedgerAt(const Examination& examination, int32_t device, const Instant& at);
Ledger LedgerAfter(const Examination& examination, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEDGER_LEDGER_H_
