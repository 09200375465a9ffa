#include "answers/answer.h"

#include "absl/strings/str_cat.h"
#include "answers/diff/diff_answer.h"
#include "answers/frag/frag_answer.h"
#include "answers/leaks/leaks_answer.h"
#include "answers/ledger/ledger_answer.h"
#include "answers/oom/oom_answer.h"
#include "answers/report/report_answer.h"
#include "answers/terminal.h"

namespace gmt::answers {
namespace {

template <typename T>
Answer AnswerOf(const T& answer) {
  return {answer.Text(Terminal()), answer.Json()};
}
template <typename T>
absl::StatusOr<Answer> AnswerOf(const absl::StatusOr<T>& answer) {
  if (!answer.ok()) return answer.status();
  return AnswerOf(*answer);
}

}  // namespace

absl::StatusOr<Answer> AnswerVerb(const std::string& verb, const Recording& recording) {
  if (verb == "report") return AnswerOf(ReportAnswer::Make(recording));
  if (verb == "oom") return AnswerOf(OomAnswer(recording));
  if (verb == "leaks") return AnswerOf(LeaksAnswer(recording));
  if (verb == "ledger") return AnswerOf(LedgerAnswer::Make(recording));
  if (verb == "frag") return AnswerOf(FragAnswer::Make(recording));
  return absl::InvalidArgumentError(absl::StrCat("no verb has an answer of that name: ", verb));
}

absl::StatusOr<Answer> AnswerDiff(const Recording& base, const Recording& changed) {
  return AnswerOf(DiffAnswer::Make(base, changed));
}

}  // namespace gmt::answers
