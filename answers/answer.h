// answers/answer.h
//
// What the reading verbs print with all their defaults, by name, for the page, which shows the same
// answers.
//
// Thread safety: one thread at a time for one recording.

#ifndef GMT_ANSWERS_ANSWER_H_
#define GMT_ANSWERS_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "answers/recording.h"

namespace gmt::answers {

// What `gpumemtrace VERB` and `gpumemtrace VERB --json` print on stdout.
struct Answer {
  std::string text;  // 100 columns, no colours
  std::string json;
};

// `verb`: report, oom, leaks, ledger or frag. Fails as the verb does.
absl::StatusOr<Answer> AnswerVerb(const std::string& verb, const Recording& recording);

absl::StatusOr<Answer> AnswerDiff(const Recording& base, const Recording& changed);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_ANSWER_H_
