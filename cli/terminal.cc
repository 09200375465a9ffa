#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "answers/json.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

constexpr int kWidthOfPipes = 100;
constexpr int kNarrowest = 40;

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

int DetectWidth() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(std::string(Environment("COLUMNS")).c_str());
  return columns > 0 ? columns : kWidthOfPipes;
}

bool WantsColor(const std::string& option, bool is_terminal) {
  if (option != "auto") return option == "always";
  return is_terminal && Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
}

}  // namespace

Terminal DetectTerminal(const TerminalOptions& options) {
  Terminal terminal;
  terminal.is_terminal = isatty(STDOUT_FILENO) == 1;
  terminal.color = WantsColor(options.color, terminal.is_terminal);
  terminal.width = options.width > 0 ? static_cast<int>(options.width) : DetectWidth();
  if (terminal.width < kNarrowest) terminal.width = kNarrowest;
  return terminal;
}

void PrintNote(const std::string& message) {
  // Parts of the message may come from a file or from another process. Line breaks are our own.
  std::vector<std::string> lines = absl::StrSplit(message, '\n');
  for (std::string& line : lines) line = format::Printable(line);
  // Does not use fmt::print: it throws if stderr is full or closed, and there is no reader to
  // inform in that case.
  std::fputs(absl::StrCat("gpumemtrace: ", absl::StrJoin(lines, "\n"), "\n").c_str(), stderr);
}

void PrintJson(const nlohmann::ordered_json& object) {
  const std::string text = answers::JsonText(object);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace gmt::cli
