#include "cli/oom_answer.h"

#include "analysis/oom/failures.h"

namespace gmt::cli {

analysis::OomReport ExplainOomOf(const analysis::Examination& examination) {
  const analysis::Failures failures = analysis::FindFailures(examination);
  analysis::LeakReport leaks;
  if (failures.decisive) {
    analysis::LeakOptions options;
    options.window.to_ns = examination.trace().failed[*failures.decisive].t_ns;
    leaks = analysis::FindLeaks(examination, options);
  }
  return analysis::ExplainOom(examination, analysis::Categorize(examination), leaks);
}

}  // namespace gmt::cli
