// analysis/ledger/ledger.h
//
// Ledger: what the driver says a device has in use, as a sum of rows that somebody can act on.
//
//   driver's figure = this process (live blocks, cached, holes, graph pools, libraries, other
//                     allocations, contexts and modules, CUPTI) + other processes + unexplained
//
// Invariants
//   L1  Rows and unexplained_bytes add up to driver_used_bytes. What no row explains is
//       unexplained_bytes: negative where more was recorded than the driver says.
//   L2  The rows of kReserved are those of analysis/fragmentation/fragmentation.h: live blocks, and
//       the causes for which the rest is free.
//   L3  A reading of the driver is of its own moment. What was recorded between that moment and the
//       one asked for is added to it: driver_used_bytes = reading_used_bytes + recorded_since.
//
// What belongs to no allocation is told from the readings: a process's figure holds its contexts and
// code, and the part of it that is there once the program has warmed up is that; what comes later,
// and no event explains, is unexplained.
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
  kReserved,          // of this process, in a framework's segments
  kOutsideFramework,  // of this process, beside them
  // This process's contexts and all other processes, where the source does not tell them apart.
  kNotApart,
  kOtherProcess,
  kSystem,  // what driver and firmware keep for themselves
};

// "reserved", "outside_framework", "not_apart", "other_process", "system".
std::string_view NameOf(LedgerGroup group);

struct LedgerRow {
  std::string name;  // "live blocks", "NCCL", "context and modules", "process 41388", ...
  uint64_t bytes = 0;
  LedgerGroup group = LedgerGroup::kReserved;
  bool is_live = false;        // of kReserved: blocks in use
  bool releasable = false;     // empty_cache() would give it back now
  std::string known_by;        // "events", "nvml", ...
  std::string detail;          // who: the stack's own frame, a process's name; may be empty
  uint64_t count = 0;          // allocations; 0: not of such
  uint32_t stack = 0;          // of most of it; 0: none
  uint64_t private_bytes = 0;  // of "graph pools": all of those pools, live blocks among them
};

// Memory that may be on the device or not, or is another's: no part of the sum.
struct LedgerAside {
  std::string name;
  uint64_t bytes = 0;
  std::string why;
};

struct Ledger {
  int32_t device = 0;
  Instant at;
  std::string source;  // of the driver's figure: "nvml", "cudaMemGetInfo"; "": nobody told one
  uint64_t driver_used_bytes = 0;  // without a source: the sum of the rows
  std::optional<uint64_t> total_bytes;
  std::vector<LedgerRow> rows;  // by group; in kReserved as above, else most bytes first
  int64_t unexplained_bytes = 0;
  int64_t unexplained_in_process = 0;  // of that, where the source tells processes apart
  // What the source says of this process, at `at`; nullopt where it does not tell processes apart.
  std::optional<uint64_t> told_process_bytes;
  std::vector<LedgerAside> asides;
  // The reading (L3); without a source 0.
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
  // Of this process for certain.
  uint64_t process_bytes() const {
    return bytes_of(LedgerGroup::kReserved) + bytes_of(LedgerGroup::kOutsideFramework);
  }
};

struct LedgerOptions {
  At at;
  std::optional<int32_t> device;
};

// By device, of those that have memory or were read. NOT_FOUND where `at` or `device` is not in the
// recording.
absl::StatusOr<std::vector<Ledger>> MakeLedgers(const Examination& examination,
                                                const LedgerOptions& options);
Ledger LedgerAt(const Examination& examination, int32_t device, const Instant& at);
Ledger LedgerAfter(const Examination& examination, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEDGER_LEDGER_H_
