#include "answers/terminal.h"

#include <fmt/format.h>

namespace gmt::answers {
namespace {

std::string Paint(bool on, int code, const std::string& text) {
  return on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

}  // namespace

std::string Terminal::Bold(const std::string& text) const { return Paint(color, 1, text); }
std::string Terminal::Red(const std::string& text) const { return Paint(color, 31, text); }
std::string Terminal::Yellow(const std::string& text) const { return Paint(color, 33, text); }
std::string Terminal::Green(const std::string& text) const { return Paint(color, 32, text); }
std::string Terminal::Dim(const std::string& text) const { return Paint(color, 2, text); }

}  // namespace gmt::answers
