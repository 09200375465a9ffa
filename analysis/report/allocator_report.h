// analysis/report/allocator_report.h
//
// The part of a report (analysis/report/report.h) about a framework's allocator: its pools at the
// report's instant, its actions, the steps of the training loop, and whether its totals match ours.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_
#define GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_

#include <algorithm>
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

// The calls by which a device's memory was acquired from the driver or returned, step by step.
struct StepDriverCalls {
  int32_t device = 0;
  uint64_t steps = 0, calls = 0;
  // The first step fills the caches, so it is not among these.
  uint64_t later_calls = 0, later_duration_ns = 0, later_steps_with_calls = 0;
  uint64_t last_step = 0;  // the last step with a call, from 1; 0: none has one

  // Whether steps have ended without any call for some time: the caches hold all they need.
  bool IsSteady() const { return steps - last_step >= std::max<uint64_t>(2, steps / 4); }
};

struct AllocatorReport {
  std::vector<DeviceAllocator> devices;  // devices of the report that have a pool or an action
  Cycles cycles;                         // of the whole recording, for the report's devices only
  // One for each device with a framework's blocks, if there are three steps or more.
  std::vector<StepDriverCalls> driver_calls;
  std::vector<Reconciliation> reconciliations;
};

// `instants`: the step at which the report shows each device.
AllocatorReport MakeAllocatorReport(const Examination& examination,
                                    const std::map<int32_t, Step>& instants, const Window& window);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALLOCATOR_REPORT_H_
