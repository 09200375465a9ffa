#include "cli/top/curses_terminal.h"

#include <langinfo.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>

namespace gmt::cli {
namespace {

constexpr short kWarningPair = 1, kTitlePair = 2;
bool colored = false;

attr_t AttributesOf(TopLine::Style style) {
  switch (style) {
    case TopLine::Style::kPlain:
      return A_NORMAL;
    case TopLine::Style::kBold:
      return A_BOLD;
    case TopLine::Style::kDim:
      return A_DIM;
    case TopLine::Style::kTitle:
      return A_BOLD | (colored ? static_cast<attr_t>(COLOR_PAIR(kTitlePair)) : A_NORMAL);
    case TopLine::Style::kChosen:
      return A_REVERSE;
    case TopLine::Style::kWarning:
      return A_BOLD | (colored ? static_cast<attr_t>(COLOR_PAIR(kWarningPair)) : A_NORMAL);
  }
  return A_NORMAL;
}

int KeyOfCurses(wint_t key) {
  switch (key) {
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_HOME:
      return kKeyHome;
    case KEY_END:
      return kKeyEnd;
    case KEY_ENTER:
      return kKeyEnter;
    case KEY_BACKSPACE:
      return kKeyBackspace;
    default:
      // KEY_RESIZE needs nothing: size() is called before each drawing.
      return CursesTerminal::kNoKey;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CursesTerminal>> CursesTerminal::Open(bool color) {
  std::setlocale(LC_ALL, "");
  if (newterm(nullptr, stdout, stdin) == nullptr) {
    const char* term = std::getenv("TERM");
    return absl::FailedPreconditionError(
        absl::StrCat("top: the terminal type TERM=", term == nullptr ? "" : term,
                     " is unknown. Try: TERM=xterm gpumemtrace top, or gpumemtrace top --once"));
  }
  std::unique_ptr<CursesTerminal> terminal(new CursesTerminal);
  terminal->utf8_ = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  set_escdelay(50);
  curs_set(0);
  colored = color && has_colors() && start_color() == OK && use_default_colors() == OK;
  if (colored) {
    init_pair(kWarningPair, COLOR_RED, -1);
    init_pair(kTitlePair, COLOR_CYAN, -1);
  }
  return terminal;
}

CursesTerminal::~CursesTerminal() { endwin(); }

TopSize CursesTerminal::size() const {
  return {std::max(getmaxx(stdscr), 1), std::max(getmaxy(stdscr), 1), utf8_};
}

void CursesTerminal::Show(const std::vector<TopLine>& lines) {
  erase();
  for (size_t row = 0; row < lines.size(); ++row) {
    const attr_t attributes = AttributesOf(lines[row].style);
    attr_set(attributes & ~A_COLOR, static_cast<short>(PAIR_NUMBER(attributes)), nullptr);
    mvaddstr(static_cast<int>(row), 0, lines[row].text.c_str());
    if (lines[row].style == TopLine::Style::kChosen) {
      for (int x = getcurx(stdscr); x > 0 && x < getmaxx(stdscr); ++x) addch(' ');
    }
  }
  attr_set(A_NORMAL, 0, nullptr);
  refresh();
}

int CursesTerminal::WaitForKey(int milliseconds) {
  timeout(milliseconds);
  wint_t key = 0;
  const int got = get_wch(&key);
  if (got == ERR) return kNoKey;
  if (got == KEY_CODE_YES) return KeyOfCurses(key);
  if (key == '\r') return kKeyEnter;
  return key == '\b' ? static_cast<int>(kKeyBackspace) : static_cast<int>(key);
}

}  // namespace gmt::cli
