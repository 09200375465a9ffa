#include "analysis/fragmentation/fragmentation_history.h"

#include <algorithm>

namespace gmt::analysis {
namespace {

bool IsBlockOn(const Rows& rows, RowId row, int32_t device) {
  return rows.device[row] == device && rows.IsBlock(row);
}

// Returns the step of each part at which most bytes are in blocks.
std::vector<Step> StepsOfMost(const Trace& trace, int32_t device, size_t parts) {
  const Rows& rows = trace.rows;
  const uint64_t last = trace.last_step();
  parts = std::min<uint64_t>(parts, last);
  std::vector<Step> steps;
  uint64_t live = 0;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0 && IsBlockOn(rows, row, device)) live += rows.size[row];
  }
  Step step = 0;
  for (size_t part = 0; part < parts; ++part) {
    const auto end = static_cast<Step>((part + 1) * last / parts);
    uint64_t most = 0;
    Step of_most = step + 1;
    while (step < end) {
      const StepRecord record = trace.steps[step++];
      if (record.row != kNoRow && IsBlockOn(rows, record.row, device))
        record.is_death ? live -= rows.size[record.row] : live += rows.size[record.row];
      if (live > most) most = live, of_most = step;
    }
    steps.push_back(of_most);
  }
  return steps;
}

}  // namespace

std::vector<FragmentationMoment> FragmentationHistory(const Examination& examination,
                                                      int32_t device, size_t moments) {
  const Trace& trace = examination.trace();
  const Rows& rows = trace.rows;
  std::vector<FragmentationMoment> history;
  std::vector<RowId> held;  // or pending
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0) held.push_back(row);
  }
  Step reached = 0;
  for (const Step step : StepsOfMost(trace, device, moments)) {
    for (; reached < step; ++reached) {
      const StepRecord record = trace.steps[reached];
      if (record.row != kNoRow && !record.is_death) held.push_back(record.row);
    }
    std::erase_if(held, [&](RowId row) {
      return std::max<Step>(rows.death[row], rows.Completed(row)) <= step;
    });
    const Fragmentation found = FragmentationAfter(examination, device, step, held);
    history.push_back(
        {step, found.at.t_ns, found.reserved_bytes, found.allocated_bytes, found.split});
  }
  return history;
}

}  // namespace gmt::analysis
