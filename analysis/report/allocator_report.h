// analysis/report/allocator_report.h
//
// The part of a report (analysis/report/report.h) about a framework's allocator: its pools at the
// report's instant, its actions, the steps of the training loop, and whether its totals match ours.
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
  std::vector<DeviceAllocator> devices;  // devices of the report that have a pool or an action
  Cycles cycles;                         // of the whole recording, for the report's devices only
  std::vector<Reconciliation> reconciliations;
};

// `instants`: the step at which the report shows each device.
AllocatorReport MakeAllocatorReport(const Examination& examination,
                                    const std::map<int32_t, Step>& instants, const Window& window);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_
