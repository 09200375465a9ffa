#include "cli/manual/documentation.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gmt::cli {
namespace {

std::string Stripped(absl::string_view text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

// Returns the cells of a row of a table; none for another line.
std::vector<std::string> CellsOf(absl::string_view line) {
  std::vector<std::string> cells;
  if (!absl::ConsumePrefix(&line, "| ")) return cells;
  for (const absl::string_view cell : absl::StrSplit(line, " |")) cells.push_back(Stripped(cell));
  return cells;
}

// Returns what stands between the backticks of a cell.
std::vector<std::string> CodeOf(const std::string& cell) {
  const std::vector<std::string> parts = absl::StrSplit(cell, '`');
  std::vector<std::string> code;
  for (size_t i = 1; i < parts.size(); i += 2) code.push_back(parts[i]);
  return code;
}

// Returns the text without backticks, without the targets of links, and without links in
// parentheses, which lead to other pages.
std::string PlainText(const std::string& markdown) {
  std::string text;
  for (size_t i = 0; i < markdown.size(); ++i) {
    const char c = markdown[i];
    if (markdown.compare(i, 3, " ([") == 0) {
      i = std::min(markdown.find("))", i), markdown.size() - 2) + 1;
    } else if (c == ']' && i + 1 < markdown.size() && markdown[i + 1] == '(') {
      i = std::min(markdown.find(')', i), markdown.size() - 1);
    } else if (c != '`' && c != '[' && c != ']') {
      text += c;
    }
  }
  return text;
}

bool IsOf(const std::string& verb, absl::string_view command) {
  return absl::StartsWith(absl::StrCat(command, " "), absl::StrCat("gpumemtrace ", verb, " "));
}

void AddExample(const std::string& verb, const std::string& command, const std::string& purpose,
                std::vector<Example>* examples) {
  const bool is_known =
      std::any_of(examples->begin(), examples->end(),
                  [&](const Example& example) { return example.command == command; });
  if (IsOf(verb, command) && !is_known) examples->push_back({command, purpose});
}

}  // namespace

std::vector<Example> ExamplesOf(const std::string& verb, absl::string_view markdown) {
  std::vector<Example> examples;
  bool is_code = false;
  for (absl::string_view line : absl::StrSplit(markdown, '\n')) {
    if (absl::StartsWith(line, "```")) {
      is_code = !is_code;
    } else if (is_code) {
      absl::ConsumePrefix(&line, "$ ");
      const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(" #", 1));
      // Pages cut outputs, which are long.
      const std::vector<std::string> commands = absl::StrSplit(parts[0], " | head");
      AddExample(verb, Stripped(commands[0]), parts.size() > 1 ? Stripped(parts[1]) : "",
                 &examples);
    } else if (const std::vector<std::string> cells = CellsOf(line); cells.size() > 1) {
      for (const std::string& code : CodeOf(cells[1]))
        AddExample(verb, code, PlainText(cells[0]), &examples);
    }
  }
  return examples;
}

std::vector<std::string> PurposesOf(const std::string& verb, absl::string_view markdown) {
  std::vector<std::string> purposes;
  for (const absl::string_view line : absl::StrSplit(markdown, '\n')) {
    const std::vector<std::string> cells = CellsOf(line);
    if (cells.size() < 2) continue;
    for (const std::string& code : CodeOf(cells[0])) {
      if (!IsOf(verb, absl::StrCat("gpumemtrace ", code))) continue;
      const std::string purpose = PlainText(cells[1]);
      purposes.push_back(code == verb ? purpose : absl::StrCat(code, ": ", purpose));
    }
  }
  return purposes;
}

}  // namespace gmt::cli
