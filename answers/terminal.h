// answers/terminal.h
//
// Terminal: what the text of an answer may assume about the place where it is shown.
//
// Thread safety: plain values.

#ifndef GMT_ANSWERS_TERMINAL_H_
#define GMT_ANSWERS_TERMINAL_H_

#include <string>

namespace gmt::answers {

struct Terminal {
  bool is_terminal = false;  // stdout is one
  bool color = false;
  int width = 100;  // columns

  // Returns `text` in bold or in a colour, or unchanged if colours are off.
  std::string Bold(const std::string& text) const;
  std::string Red(const std::string& text) const;
  std::string Yellow(const std::string& text) const;
  std::string Green(const std::string& text) const;
  std::string Dim(const std::string& text) const;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_TERMINAL_H_
