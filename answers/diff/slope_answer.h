// answers/diff/slope_answer.h
//
// SlopeAnswer: how memory grows with the inputs, from two runs (analysis/diff/slope.h).
//
// Ownership: it needs the recordings only while it is made. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_DIFF_SLOPE_ANSWER_H_
#define GMT_ANSWERS_DIFF_SLOPE_ANSWER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/diff/slope.h"
#include "answers/recording.h"
#include "answers/terminal.h"

namespace gmt::answers {

class SlopeAnswer {
 public:
  // The recordings may be in either order.
  static absl::StatusOr<SlopeAnswer> Make(const Recording& first, const Recording& second,
                                          const analysis::DiffOptions& options = {});

  // `top`: rows per device; 0: the default.
  std::string Text(const Terminal& terminal, size_t top = 0) const;
  // All rows.
  std::string Json() const;

 private:
  SlopeAnswer(analysis::Slopes slopes, std::string base_file, std::string large_file);

  analysis::Slopes slopes_;
  std::string base_file_, large_file_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_DIFF_SLOPE_ANSWER_H_
