// answers/oom/oom_answer.h
//
// OomAnswer: why a recording's program ran out of memory (analysis/oom/oom.h), and what would help.
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_OOM_OOM_ANSWER_H_
#define GMT_ANSWERS_OOM_OOM_ANSWER_H_

#include <string>

#include "analysis/oom/oom.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class OomAnswer {
 public:
  // Looks for leaks up to the failure only: what comes after it frees memory.
  explicit OomAnswer(const Recording& recording);

  const analysis::OomReport& report() const { return report_; }
  std::string Text(const Terminal& terminal) const;
  std::string Json() const;

 private:
  const Recording& recording_;
  const analysis::OomReport report_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_OOM_OOM_ANSWER_H_
