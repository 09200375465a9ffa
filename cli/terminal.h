// cli/terminal.h
//
// Terminal: what text output may assume about the place it goes to. Text goes to stdout, notes and
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

  // `text` in bold or in a colour where colours are on, else as it is.
  std::string Bold(const std::string& text) const;
  std::string Red(const std::string& text) const;
  std::string Yellow(const std::string& text) const;
  std::string Green(const std::string& text) const;
  std::string Dim(const std::string& text) const;
};

// Looks at stdout, NO_COLOR, TERM and COLUMNS. An option given on the command line wins over the
// environment.
Terminal DetectTerminal(const TerminalOptions& options);

// Prints "gpumemtrace: MESSAGE" on stderr.
void PrintNote(const std::string& message);

}  // namespace gmt::cli

#endif  // GMT_CLI_TERMINAL_H_
