// cli/query/query_prompt.h
//
// The prompt of `gpumemtrace query` at a terminal: reads statements, which end with a semicolon,
// and commands, which begin with a dot, until the user ends it.

#ifndef GMT_CLI_QUERY_QUERY_PROMPT_H_
#define GMT_CLI_QUERY_QUERY_PROMPT_H_

#include <functional>

#include "absl/status/statusor.h"
#include "answers/sql/query.h"

namespace gmt::cli {

// `options_for`: how the result of a statement is printed in that form; `form` is the first one.
// Returns the exit code. Fails if the terminal cannot be used.
absl::StatusOr<int> RunQueryPrompt(
    answers::sql::Query& query, answers::sql::Form form,
    const std::function<answers::sql::Options(answers::sql::Form)>& options_for);

}  // namespace gmt::cli

#endif  // GMT_CLI_QUERY_QUERY_PROMPT_H_
