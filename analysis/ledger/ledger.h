// analysis/ledger/ledger.h
//
// Ledger: what the driver says a device has in use, as a sum of rows that somebody can act on.
//
//   driver's figure = this process (live blocks, cached, holes, graph pools, libraries, other
//                     allocations, contexts and modules, CUPTI) + other processes + unexplained
//
// The sum is exact: what no row explains is `unexplained_bytes`, which is negative where more was
// recorded than the driver says. Each row says how it is known.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEDGER_LEDGER_H_
#define GMT_ANALYSIS_LEDGER_LEDGER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination.h"
#include "analysis/instant.h"

namespace gmt::analysis {

enum class LedgerGroup : uint8_t { kReserved, kOutsideFramework, kOtherProcess };

struct LedgerRow {
  std::string name;  // "live blocks", "NCCL", "context and modules", "process 41388", ...
  uint64_t bytes = 0;
  LedgerGroup group = LedgerGroup::kReserved;
  bool releasable = false;  // empty_cache() would give it back now
  std::string known_by;     // "events", "NVML", "cudaMemGetInfo at the first call", ...
  std::string detail;       // who: the stack's own frame, a path; may be empty
};

struct Ledger {
  int32_t device = 0;
  Instant at;
  std::string source;  // of the driver's figure: "nvml", "cudaMemGetInfo"; "": nobody told one
  uint64_t driver_used_bytes = 0;  // without a source: the sum of the rows
  std::optional<uint64_t> total_bytes;
  std::vector<LedgerRow> rows;  // by group, most bytes first
  int64_t unexplained_bytes = 0;

  uint64_t process_bytes() const {
    uint64_t sum = 0;
    for (const LedgerRow& row : rows) {
      if (row.group != LedgerGroup::kOtherProcess) sum += row.bytes;
    }
    return sum;
  }
};

struct LedgerOptions {
  At at;
  std::optional<int32_t> device;
};

// By device. NOT_FOUND where `at` or `device` is not in the recording.
absl::StatusOr<std::vector<Ledger>> MakeLedgers(const Examination& examination,
                                                const LedgerOptions& options);
Ledger LedgerAfter(const Examination& examination, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEDGER_LEDGER_H_
