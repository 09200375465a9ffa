// analysis/ledger/process_rows.h
//
// The rows of a ledger that come from events: what the process itself holds on a device.
//
// Thread safety: pure function. Cost: one walk over the trace's rows, plus the cost of splitting a
// framework's segments.

#ifndef GMT_ANALYSIS_LEDGER_PROCESS_ROWS_H_
#define GMT_ANALYSIS_LEDGER_PROCESS_ROWS_H_

#include <cstdint>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/ledger/ledger.h"

namespace gmt::analysis {

struct ProcessRows {
  std::vector<LedgerRow> rows;  // in the order of LedgerGroup and of its comments
  std::vector<NotCounted> not_counted;
  // Bytes in the driver's figure (analysis/trace/device_use.h): the sum of the rows, unless blocks
  // overlap or physical memory is mapped twice, as in broken recordings.
  uint64_t recorded_bytes = 0;
};

ProcessRows ProcessRowsAfter(const Examination& examination, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEDGER_PROCESS_ROWS_H_
