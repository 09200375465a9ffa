// cli/terminal.h
//
// The terminal of this process: answers go to stdout, notes and progress to stderr.
//
// Thread safety: functions may be called from any thread.

#ifndef GMT_CLI_TERMINAL_H_
#define GMT_CLI_TERMINAL_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "answers/terminal.h"

namespace gmt::cli {

using answers::Terminal;

// As given on the command line.
struct TerminalOptions {
  std::string color = "auto";  // "auto", "always", "never"
  int64_t width = 0;           // columns; 0: as wide as the terminal
};

// Detects the terminal from stdout, NO_COLOR, TERM and COLUMNS. Options given on the command line
// take precedence.
Terminal DetectTerminal(const TerminalOptions& options);

// Prints "gpumemtrace: MESSAGE" on stderr.
void PrintNote(const std::string& message);

// Prints one JSON object on stdout (answers/json.h).
void PrintJson(const nlohmann::ordered_json& object);

}  // namespace gmt::cli

#endif  // GMT_CLI_TERMINAL_H_
