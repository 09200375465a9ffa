// cli/terminal.h
//
// Terminal: the properties of the place that text output goes to. Text goes to stdout, notes and
// progress to stderr.
//
// Thread safety: plain values.

#ifndef GMT_CLI_TERMINAL_H_
#define GMT_CLI_TERMINAL_H_

#include <cstdint>
#include <string>

namespace gmt::cli {

// As given on the command line.
struct TerminalOptions {
  std::string color = "auto";  // "auto", "always", "never"
  int64_t width = 0;           // columns; 0: as wide as the terminal
};

struct Terminal {
  bool is_terminal = false;  // stdout is one
  bool color = false;
  int width = 100;  // columns

  // Returns `text` in bold or in a colour if colours are enabled, otherwise unchanged.
  std::string Bold(const std::string& text) const;
  std::string Red(const std::string& text) const;
  std::string Yellow(const std::string& text) const;
  std::string Green(const std::string& text) const;
  std::string Dim(const std::string& text) const;
};

// Detects the terminal from stdout, NO_COLOR, TERM and COLUMNS. Options given on the command line
// take precedence.
Terminal DetectTerminal(const TerminalOptions& options);

// Prints "gpumemtrace: MESSAGE" on stderr.
void PrintNote(const std::string& message);

}  // namespace gmt::cli

#endif  // GMT_CLI_TERMINAL_H_
