#include "analysis/examination/examination.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/parallel.h"

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

// Answers that need the steps of the loop need the replay as well. Each takes several walks over
// the trace, and neither depends on the other.
const Cycles& Examination::cycles() const {
  if (cycles_) return *cycles_;
  const RowKinds& kinds = this->kinds();
  const auto find_cycles = [&] {
    cycles_ = FindCycles(trace_, kinds, definitions_, phase_spans());
  };
  const auto replay = [&] {
    if (!replay_) replay_.emplace(trace_, kinds);
  };
  RunBoth(find_cycles, replay);
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

std::set<int32_t> Examination::Gpus() const {
  std::set<int32_t> gpus;
  for (const auto& [device, totals] : replay().devices()) {
    if (device != kHostDevice) gpus.insert(device);
  }
  for (const DeviceSample& sample : trace_.samples) gpus.insert(sample.device);
  return gpus;
}

absl::Status Examination::CheckGpu(int32_t number) const {
  const std::set<int32_t> gpus = Gpus();
  if (gpus.contains(number)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("the recording has no GPU ", number,
                   gpus.empty() ? "" : absl::StrCat("; it has: ", absl::StrJoin(gpus, ", "))));
}

}  // namespace gmt::analysis
