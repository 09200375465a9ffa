// analysis/examination/examination.h
//
// Examination: one recording and what every answer about it needs: amounts, the steps of its loop,
// its allocator's actions, its stacks as text. Each is computed once, on first use, so that no two
// answers about a recording can disagree.
//
//   Examination examination(trace, definitions);
//   const Categories categories = Categorize(examination);
//   const LeakReport leaks = FindLeaks(examination);
//   const OomReport oom = ExplainOom(examination, categories, leaks);
//
// Ownership: trace, definitions and rules must outlive it; returned references live as long as it
// does.
// Thread safety: one thread at a time. cycles() also computes replay(), in a thread of its own that
// ends within the call.

#ifndef GMT_ANALYSIS_EXAMINATION_EXAMINATION_H_
#define GMT_ANALYSIS_EXAMINATION_EXAMINATION_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "analysis/examination/allocator_actions.h"
#include "analysis/examination/replay.h"
#include "analysis/loop/phase_spans.h"
#include "analysis/loop/phases.h"
#include "analysis/stacks/stack_texts.h"
#include "analysis/trace/row_kinds.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "symbols/frame_rules.h"

namespace gmt::analysis {

class Examination {
 public:
  Examination(const Trace& trace, const format::Definitions& definitions,
              const symbols::FrameRules& rules = symbols::FrameRules::BuiltIn());

  const Trace& trace() const { return trace_; }
  const format::Definitions& definitions() const { return definitions_; }
  const symbols::FrameRules& rules() const { return rules_; }
  StackTexts& stacks() const { return stacks_; }

  const RowKinds& kinds() const;
  const Replay& replay() const;  // of the whole recording
  const PhaseSpans& phase_spans() const;
  const Cycles& cycles() const;
  const std::vector<AllocatorAction>& allocator_actions() const;

  // The device with the highest peak; kHostDevice if nothing was allocated on a GPU.
  int32_t MainDevice() const;
  // The GPUs on which memory was recorded, or of which there are samples.
  std::set<int32_t> Gpus() const;
  // Returns NotFound if there is no such GPU in the recording.
  absl::Status CheckGpu(int32_t number) const;

 private:
  const Trace& trace_;
  const format::Definitions& definitions_;
  const symbols::FrameRules& rules_;
  mutable StackTexts stacks_;
  mutable std::optional<RowKinds> kinds_;
  mutable std::optional<Replay> replay_;
  mutable std::optional<PhaseSpans> phase_spans_;
  mutable std::optional<Cycles> cycles_;
  mutable std::optional<std::vector<AllocatorAction>> allocator_actions_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_EXAMINATION_H_
