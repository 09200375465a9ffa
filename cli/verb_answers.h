// cli/verb_answers.h
//
// What reading verbs print by default about a recording that is already open. For the page, which
// shows the same answers.
//
// Thread safety: one thread at a time per examination.

#ifndef GMT_CLI_VERB_ANSWERS_H_
#define GMT_CLI_VERB_ANSWERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination.h"

namespace gmt::cli {

struct AnsweredFile {
  std::string path;                          // as named by the user
  const std::vector<std::string>& lacks;     // LoadedTrace
  const std::vector<std::string>& unnamed;   // LoadedTrace
  const analysis::Examination& examination;  // with the built-in rules
  const analysis::Categories& categories;    // likewise
};

// The text that the verb prints to stdout.
struct VerbAnswerText {
  std::string text;  // 100 columns, no colours
  std::string json;
};

// `verb`: report, oom, leaks, ledger or frag. Fails if the verb fails.
absl::StatusOr<VerbAnswerText> AnswerOfVerb(const std::string& verb, const AnsweredFile& file);

absl::StatusOr<VerbAnswerText> AnswerOfDiff(const AnsweredFile& base, const AnsweredFile& changed);

}  // namespace gmt::cli

#endif  // GMT_CLI_VERB_ANSWERS_H_
