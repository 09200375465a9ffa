#include "answers/whatif/failed_step.h"

#include <algorithm>

#include "analysis/oom/oom.h"
#include "answers/oom/oom_answer.h"

namespace gmt::answers {

using analysis::ExpectedPeak;

FailedStep::FailedStep(const Recording& recording, const analysis::AllocatorHistory& history) {
  if (recording.trace().failed.empty()) return;
  const OomAnswer answer(recording);
  const analysis::OomReport& oom = answer.report();
  if (!oom.was_fatal || oom.device != history.device) return;
  has_failed_ = true;
  step_ = oom.step;
  expected_ = oom.evidence.expected;
  const uint64_t available = oom.evidence.available_bytes;
  beside_bytes_ = history.capacity.value_or(available);
  beside_bytes_ -= std::min(beside_bytes_, available);
}

uint64_t FailedStep::Needs(double factor) const {
  const bool is_known = is_compared() || expected_.basis == ExpectedPeak::Basis::kFirstStep;
  return is_known ? expected_.WithInputs(factor) + beside_bytes_ : 0;
}

}  // namespace gmt::answers
