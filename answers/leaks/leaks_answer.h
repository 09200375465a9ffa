// answers/leaks/leaks_answer.h
//
// LeaksAnswer: what holds more memory after each step (analysis/leaks/leaks.h).
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_LEAKS_LEAKS_ANSWER_H_
#define GMT_ANSWERS_LEAKS_LEAKS_ANSWER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/leaks/leaks.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class LeaksAnswer {
 public:
  // Returns NotFound if the recording does not have the GPU that the options select.
  static absl::StatusOr<LeaksAnswer> Make(const Recording& recording,
                                          const analysis::LeakOptions& options);
  explicit LeaksAnswer(const Recording& recording);

  // True if something leaks, or likely does.
  bool HasLeak() const;
  // `top`: suspects shown; 0: the default.
  std::string Text(const Terminal& terminal, size_t top = 0) const;
  // 0: all suspects.
  std::string Json(size_t top = 0) const;

 private:
  LeaksAnswer(const Recording& recording, const analysis::LeakOptions& options);

  const Recording& recording_;
  const analysis::LeakReport report_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_LEAKS_LEAKS_ANSWER_H_
