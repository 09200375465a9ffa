// analysis/report/allocator_report.h
//
// What a report (analysis/report/report.h) says of a framework's allocator beside what holds the memory: its
// pools at the report's moment, what it did, the steps of the training loop, and whether its totals
// are ours.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_
#define GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/examination/allocator_actions.h"
#include "analysis/examination/cache_state.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/replay.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct DeviceAllocator {
  int32_t device = 0;
  std::vector<PoolState> pools;          // at the device's instant
  std::vector<AllocatorAction> actions;  // in the window
};

struct AllocatorReport {
  std::vector<DeviceAllocator> devices;  // those of the report that have a pool or an action
  Cycles cycles;                         // of the whole recording; of the report's devices only
  std::vector<Reconciliation> reconciliations;
};

// `instants`: the steps that the report shows its devices at.
AllocatorReport MakeAllocatorReport(const Examination& examination,
                                    const std::map<int32_t, Step>& instants, const Window& window);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_
