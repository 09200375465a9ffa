// cli/manual/documentation.h
//
// What README.md and docs/commands.md say about a verb, for its manual page.

#ifndef GMT_CLI_MANUAL_DOCUMENTATION_H_
#define GMT_CLI_MANUAL_DOCUMENTATION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmt::cli {

// The pages, as they are in the tree.
absl::string_view ReadmePage();
absl::string_view CommandsPage();

struct Example {
  std::string command;
  std::string purpose;  // "Is it fragmentation?"; may be empty
};

// Returns the commands that `markdown` shows for a verb: in rows of tables, where the first cell is
// the purpose, and in blocks of code.
std::vector<Example> ExamplesOf(const std::string& verb, absl::string_view markdown);

// Returns what the table of all commands says that a verb does: the second cell of each row whose
// first cell names it. Plain text.
std::vector<std::string> PurposesOf(const std::string& verb, absl::string_view markdown);

}  // namespace gmt::cli

#endif  // GMT_CLI_MANUAL_DOCUMENTATION_H_
