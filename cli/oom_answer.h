// cli/oom_answer.h
//
// Explains why a recording's program ran out of memory, for the verb `oom` and for the end of
// `run`.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_OOM_ANSWER_H_
#define GMT_CLI_OOM_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination.h"
#include "analysis/oom/oom.h"
#include "cli/terminal.h"

namespace gmt::cli {

// Leaks are searched up to the failure, because the events after it free memory.
analysis::OomReport ExplainOomOf(const analysis::Examination& examination);
// `categories` are those of the examination, if already known.
analysis::OomReport ExplainOomOf(const analysis::Examination& examination,
                                 const analysis::Categories& categories);

// Returns the text of the answer, or "" if the program did not run out of memory.
absl::StatusOr<std::string> OomAnswer(const std::string& path, const Terminal& terminal);

}  // namespace gmt::cli

#endif  // GMT_CLI_OOM_ANSWER_H_
