#include "symbols/frame_pattern.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::symbols {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr size_t kMaxRulesBytes = 1 << 20;

std::string_view WithoutLeadingBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Removes the text up to the first of `ends` from *rest and returns it.
std::string_view TakeUntil(const char* ends, std::string_view* rest) {
  const std::string_view word = rest->substr(0, rest->find_first_of(ends));
  rest->remove_prefix(word.size());
  return word;
}

// Removes a pattern from *rest and returns it split at its stars: "a*b" gives "a", "b". Returns
// nothing if a quote is not closed.
std::optional<std::vector<std::string>> TakePattern(std::string_view* rest) {
  std::vector<std::string> parts(1);
  const bool quoted = !rest->empty() && rest->front() == '"';
  if (quoted) rest->remove_prefix(1);
  while (!rest->empty()) {
    char c = rest->front();
    if (quoted ? c == '"' : kBlank.find(c) != kBlank.npos) break;
    rest->remove_prefix(1);
    if (c == '*') {
      parts.emplace_back();
      continue;
    }
    if (c == '\\' && !rest->empty()) {
      c = rest->front();
      rest->remove_prefix(1);
    }
    parts.back() += c;
  }
  if (!quoted) return parts;
  if (rest->empty()) return std::nullopt;
  rest->remove_prefix(1);
  return parts;
}

// Returns whether `text` consists of `parts` with any text in between: the first and last at its
// ends, each other at its first occurrence after the previous one.
bool FitsPattern(const std::vector<std::string>& parts, std::string_view text) {
  const std::string &first = parts.front(), &last = parts.back();
  if (!text.starts_with(first)) return false;
  if (parts.size() == 1) return text.size() == first.size();
  text.remove_prefix(first.size());
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t at = text.find(parts[i]);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + parts[i].size());
  }
  return text.ends_with(last);
}

}  // namespace

absl::StatusOr<FramePattern::Condition> FramePattern::ParseCondition(std::string_view* rest) {
  static constexpr std::pair<const char*, Field> kFields[] = {{"function", Field::kFunction},
                                                              {"module", Field::kModuleName},
                                                              {"file", Field::kFile},
                                                              {"language", Field::kLanguage}};
  const std::string_view word = TakeUntil("= \t", rest);
  for (const auto& [name, field] : kFields) {
    if (name != word || rest->empty() || rest->front() != '=') continue;
    rest->remove_prefix(1);
    const std::string_view pattern = *rest;
    auto parts = TakePattern(rest);
    if (!parts)
      return absl::InvalidArgumentError(absl::StrCat("no closing \" in ", std::string(pattern)));
    const bool is_quoted = !pattern.empty() && pattern.front() == '"';
    if (parts->size() == 1 && parts->front().empty() && !is_quoted) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "= has no pattern; * matches any text, \"\" an empty one"));
    }
    const bool is_path =
        pattern.substr(0, pattern.size() - rest->size()).find('/') != std::string_view::npos;
    const Field of = field == Field::kModuleName && is_path ? Field::kModulePath : field;
    return Condition{of, *std::move(parts)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(word),
                   "' instead of function=, file=, module= or language= with a pattern"));
}

absl::StatusOr<FramePattern> FramePattern::Parse(std::string_view line, const std::string& name) {
  FramePattern pattern;
  for (line = WithoutLeadingBlanks(line); !line.empty(); line = WithoutLeadingBlanks(line)) {
    auto condition = ParseCondition(&line);
    if (!condition.ok()) return condition.status();
    if (!line.empty() && kBlank.find(line.front()) == kBlank.npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", std::string(line), "' after a closing \"; patterns must be separated by a blank"));
    }
    pattern.conditions_.push_back(*std::move(condition));
  }
  if (pattern.conditions_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "which frames are '", name, "'? Add a pattern, for example: ", name, " file=*/mine/*"));
  }
  return pattern;
}

bool FramePattern::Fits(const FrameView& frame) const {
  for (const Condition& condition : conditions_) {
    std::string_view text;
    switch (condition.field) {
      case Field::kFunction:
        text = frame.function;
        break;
      case Field::kModuleName:
        text = BaseName(frame.module);
        break;
      case Field::kModulePath:
        text = frame.module;
        break;
      case Field::kFile:
        text = frame.file;
        break;
      case Field::kLanguage:
        text = frame.language;
        break;
    }
    if (!FitsPattern(condition.parts, text)) return false;
  }
  return true;
}

absl::Status ForEachRule(std::string_view text, const std::string& name,
                         const std::function<absl::Status(std::string_view line)>& take) {
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = WithoutLeadingBlanks(TakeUntil("\n", &text));
    if (!text.empty()) text.remove_prefix(1);
    if (line.empty() || line.front() == '#') continue;
    const absl::Status status = take(line);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", number, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadRules(const std::string& path) {
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  std::string text;
  char buffer[4096];
  for (size_t got; text.size() <= kMaxRulesBytes && (got = fread(buffer, 1, sizeof(buffer), file));)
    text.append(buffer, got);
  const bool good = ferror(file) == 0;
  const int error = errno;
  fclose(file);
  if (!good) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(error)));
  if (text.size() > kMaxRulesBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is longer than 1 MiB: not a file of rules"));
  return text;
}

std::string TakeRuleName(std::string_view* line) {
  const bool quoted = !line->empty() && line->front() == '"';
  if (!quoted) return std::string(TakeUntil(" \t", line));
  line->remove_prefix(1);
  std::string name(TakeUntil("\"", line));
  if (!line->empty()) line->remove_prefix(1);
  return name;
}

}  // namespace gmt::symbols
