#include "answers/oom/oom_answer.h"

#include "analysis/examination/failures.h"
#include "analysis/stacks/source_line.h"
#include "answers/oom/oom_text.h"

namespace gmt::answers {
namespace {

analysis::OomReport Explain(const Recording& recording) {
  const analysis::Examination& examination = recording.examination();
  const analysis::Failures failures = analysis::FindFailures(examination);
  analysis::LeakReport leaks;
  if (failures.decisive) {
    leaks = analysis::FindLeaksUntilFailure(examination,
                                            recording.trace().failed[*failures.decisive].t_ns);
  }
  return analysis::ExplainOom(examination, recording.categories(), leaks);
}

}  // namespace

OomAnswer::OomAnswer(const Recording& recording)
    : recording_(recording), report_(Explain(recording)) {}

std::string OomAnswer::Text(const Terminal& terminal) const {
  analysis::SourceLines sources(recording_.trace().start_unix_ns);
  return OomText(report_, recording_.examination(), sources, recording_.path(), terminal);
}

std::string OomAnswer::Json() const {
  analysis::SourceLines sources(recording_.trace().start_unix_ns);
  return OomJson(report_, recording_.examination(), sources, recording_.path());
}

}  // namespace gmt::answers
