// answers/diff/diff_answer.h
//
// DiffAnswer: what holds more or less memory in one recording than in another
// (analysis/diff/diff.h).
//
// Ownership: it needs the recordings only while it is made. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_DIFF_DIFF_ANSWER_H_
#define GMT_ANSWERS_DIFF_DIFF_ANSWER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/diff/diff.h"
#include "answers/diff/diff_text.h"
#include "answers/diff/limit.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class DiffAnswer {
 public:
  static absl::StatusOr<DiffAnswer> Make(const Recording& base, const Recording& changed,
                                         const analysis::DiffOptions& options = {},
                                         std::optional<Limit> limit = {});

  // True if a GPU grew by more than the limit.
  bool HasFailed() const;
  // `top`: rows; 0: as many as fit a screen.
  std::string Text(const Terminal& terminal, size_t top = 0) const;
  std::string Markdown(size_t top = 0) const;
  std::string Json() const;

 private:
  DiffAnswer(analysis::Comparison comparison, DiffSource source);

  analysis::Comparison comparison_;
  DiffSource source_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_DIFF_DIFF_ANSWER_H_
