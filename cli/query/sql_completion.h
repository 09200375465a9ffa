// cli/query/sql_completion.h
//
// What may come next while a statement or a command is typed at the prompt of `query`
// (query_prompt.h).
//
// Thread safety: pure functions.

#ifndef GMT_CLI_QUERY_SQL_COMPLETION_H_
#define GMT_CLI_QUERY_SQL_COMPLETION_H_

#include <string>
#include <string_view>
#include <vector>

namespace gmt::cli {

// The commands of the prompt, and what `.mode` accepts.
inline constexpr std::string_view kPromptCommands[] = {".help", ".mode", ".quit", ".schema",
                                                       ".tables"};
inline constexpr std::string_view kPromptModes[] = {"table", "box", "csv", "json"};

// Words that may end `text`, which ends at the cursor. All begin with the word that is being typed,
// `typed` bytes long; keywords do without regard to case, and continue in the case that was typed.
struct SqlCompletion {
  size_t typed = 0;
  std::vector<std::string> words;  // in alphabetical order, each once
};

// `functions`: those that SQL knows here. A function's word ends with "(".
SqlCompletion CompleteSql(std::string_view text, const std::vector<std::string>& functions);

}  // namespace gmt::cli

#endif  // GMT_CLI_QUERY_SQL_COMPLETION_H_
