#include "analysis/examination/examination.h"

namespace gmt::analysis {

Examination::Examination(const Trace& trace, const format::Definitions& definitions,
                         const symbols::FrameRules& rules)
    : trace_(trace), definitions_(definitions), rules_(rules), stacks_(definitions, rules) {}

const RowKinds& Examination::kinds() const {
  if (!kinds_) kinds_.emplace(trace_);
  return *kinds_;
}

const Replay& Examination::replay() const {
  if (!replay_) replay_.emplace(trace_, kinds());
  return *replay_;
}

const PhaseSpans& Examination::phase_spans() const {
  if (!phase_spans_) phase_spans_ = FindPhaseSpans(trace_, definitions_);
  return *phase_spans_;
}

const Cycles& Examination::cycles() const {
  if (!cycles_) cycles_ = FindCycles(trace_, kinds(), definitions_, phase_spans());
  return *cycles_;
}

const std::vector<AllocatorAction>& Examination::allocator_actions() const {
  if (!allocator_actions_) allocator_actions_ = FindAllocatorActions(trace_, definitions_);
  return *allocator_actions_;
}

int32_t Examination::MainDevice() const {
  int32_t main = kHostDevice;
  uint64_t most = 0;
  for (const auto& [device, totals] : replay().devices()) {
    if (device == kHostDevice || (main != kHostDevice && totals.bytes.peak <= most)) continue;
    main = device;
    most = totals.bytes.peak;
  }
  return main;
}

}  // namespace gmt::analysis
