#include "cli/oom_answer.h"

#include "analysis/failures.h"
#include "cli/load_trace.h"
#include "cli/oom_text.h"

namespace gmt::cli {

analysis::OomReport ExplainOomOf(const analysis::Examination& examination) {
  return ExplainOomOf(examination, analysis::Categorize(examination));
}

analysis::OomReport ExplainOomOf(const analysis::Examination& examination,
                                 const analysis::Categories& categories) {
  const analysis::Failures failures = analysis::FindFailures(examination);
  analysis::LeakReport leaks;
  if (failures.decisive) {
    analysis::LeakOptions options;
    options.window.to_ns = examination.trace().failed[*failures.decisive].t_ns;
    leaks = analysis::FindLeaks(examination, options);
  }
  return analysis::ExplainOom(examination, categories, leaks);
}

absl::StatusOr<std::string> OomAnswer(const std::string& path, const Terminal& terminal) {
  auto loaded = LoadTrace(path);
  if (!loaded.ok()) return loaded.status();
  const analysis::Examination examination((*loaded)->trace, (*loaded)->definitions);
  const analysis::OomReport report = ExplainOomOf(examination);
  if (report.verdict == analysis::OomVerdict::kNone) return "";
  SourceLines sources((*loaded)->trace.start_unix_ns);
  return OomText(report, examination, sources, path, terminal);
}

}  // namespace gmt::cli
