// cli/top/curses_terminal.h
//
// CursesTerminal: a terminal that lines are drawn on, and its keys. ncurses is known to its .cc alone.
//
// Thread safety: one, and only one thread. A signal that ends the program leaves the terminal as it was.

#ifndef GMT_CLI_TOP_CURSES_TERMINAL_H_
#define GMT_CLI_TOP_CURSES_TERMINAL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/top/top_screen.h"

namespace gmt::cli {

class CursesTerminal {
 public:
  // Fails, with what mends it, where the terminal is of a kind that nobody knows.
  static absl::StatusOr<std::unique_ptr<CursesTerminal>> Open(bool color);
  ~CursesTerminal();
  CursesTerminal(const CursesTerminal&) = delete;
  CursesTerminal& operator=(const CursesTerminal&) = delete;

  TopSize size() const;
  void Show(const std::vector<TopLine>& lines);

  static constexpr int kNoKey = -1;
  // A character, a TopKey, or kNoKey after that time.
  int WaitForKey(int milliseconds);

 private:
  CursesTerminal() = default;

  bool utf8_ = false;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_CURSES_TERMINAL_H_
