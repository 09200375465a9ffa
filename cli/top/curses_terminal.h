// cli/top/curses_terminal.h
//
// CursesTerminal: draws lines on a terminal and reads its keys. Only its .cc file includes ncurses.
//
// Thread safety: one object, used by one thread. A signal that ends the program leaves the terminal
// as it was.

#ifndef GMT_CLI_TOP_CURSES_TERMINAL_H_
#define GMT_CLI_TOP_CURSES_TERMINAL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/top/top_screen.h"

namespace gmt::cli {

class CursesTerminal {
 public:
  // Fails with advice if the terminal type is unknown.
  static absl::StatusOr<std::unique_ptr<CursesTerminal>> Open(bool color);
  ~CursesTerminal();
  CursesTerminal(const CursesTerminal&) = delete;
  CursesTerminal& operator=(const CursesTerminal&) = delete;

  TopSize size() const;
  void Show(const std::vector<TopLine>& lines);

  static constexpr int kNoKey = -1;
  // Waits up to that time. Returns a character, a TopKey, or kNoKey.
  int WaitForKey(int milliseconds);

 private:
  CursesTerminal() = default;

  bool utf8_ = false;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_CURSES_TERMINAL_H_
