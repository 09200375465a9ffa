// answers/advise/advise_answer.h
//
// AdviseAnswer: what to change next to use less memory (analysis/advise/advise.h), as text and as
// JSON.
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_ADVISE_ADVISE_ANSWER_H_
#define GMT_ANSWERS_ADVISE_ADVISE_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "analysis/advise/advise.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class AdviseAnswer {
 public:
  // Returns NotFound if the recording does not have the GPU that the options select.
  static absl::StatusOr<AdviseAnswer> Make(const Recording& recording,
                                           const analysis::AdviseOptions& options);

  const analysis::AdviseReport& report() const { return report_; }
  // The next change only, or `all` of them in their order.
  std::string Text(const Terminal& terminal, bool all) const;
  std::string Json() const;

 private:
  AdviseAnswer(const Recording& recording, analysis::AdviseReport report);

  const Recording& recording_;
  const analysis::AdviseReport report_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_ADVISE_ADVISE_ANSWER_H_
