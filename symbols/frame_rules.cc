#include "symbols/frame_rules.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "symbols/builtin_frame_rules.h"

namespace gmt::symbols {
namespace {

constexpr std::pair<const char*, FrameRole> kRoles[] = {
    {"own", FrameRole::kOwn},
    {"library", FrameRole::kLibrary},
    {"operator", FrameRole::kOperator},
    {"profiler", FrameRole::kProfiler},
    {"cuda", FrameRole::kCuda},
    {"allocator", FrameRole::kAllocator},
    {"dispatcher", FrameRole::kDispatcher},
    {"interpreter", FrameRole::kInterpreter},
    {"start", FrameRole::kStart},
};

std::optional<FrameRole> RoleNamed(std::string_view word) {
  for (const auto& [name, role] : kRoles) {
    if (name == word) return role;
  }
  return std::nullopt;
}

std::string AllRoles() {
  return absl::StrJoin(
      kRoles, ", ", [](std::string* out, const auto& role) { absl::StrAppend(out, role.first); });
}

constexpr std::string_view kBlank = " \t\r";

std::string_view WithoutLeadingBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The text up to the first of `ends` goes out of *rest.
std::string_view TakeUntil(const char* ends, std::string_view* rest) {
  const std::string_view word = rest->substr(0, rest->find_first_of(ends));
  rest->remove_prefix(word.size());
  return word;
}

// Takes a pattern out of *rest, cut at its stars: "a*b" gives "a", "b". Nothing where a quote is
// not closed.
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

// Whether `text` is `parts` with anything in between: first and last at its ends, each other at the
// first place behind the one before.
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

// False with errno where it cannot be read.
bool ReadWhole(const std::string& path, std::string* text) {
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof(buffer), file)) > 0;) text->append(buffer, got);
  const bool good = ferror(file) == 0;
  const int error = errno;
  fclose(file);
  errno = error;
  return good;
}

}  // namespace

std::string_view RoleName(FrameRole role) {
  for (const auto& [name, known] : kRoles) {
    if (known == role) return name;
  }
  return "";
}

absl::StatusOr<FrameRules::Condition> FrameRules::ParseCondition(std::string_view* rest) {
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
    if (parts->size() == 1 && parts->front().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "= has no pattern; * stands for any text"));
    }
    const bool is_path =
        pattern.substr(0, pattern.size() - rest->size()).find('/') != std::string_view::npos;
    const Field of = field == Field::kModuleName && is_path ? Field::kModulePath : field;
    return Condition{of, *std::move(parts)};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", std::string(word),
      "' where function=, file=, module= or language= must stand, each with a pattern"));
}

absl::StatusOr<FrameRules::Rule> FrameRules::ParseRule(std::string_view line) {
  const std::string_view word = TakeUntil(" \t", &line);
  const std::optional<FrameRole> role = RoleNamed(word);
  if (!role) {
    return absl::InvalidArgumentError(
        absl::StrCat("no role is called '", std::string(word), "'; there are: ", AllRoles()));
  }
  const std::string name(word);
  Rule rule{*role, {}};
  for (line = WithoutLeadingBlanks(line); !line.empty(); line = WithoutLeadingBlanks(line)) {
    auto condition = ParseCondition(&line);
    if (!condition.ok()) return condition.status();
    if (!line.empty() && kBlank.find(line.front()) == kBlank.npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", std::string(line), "' behind a closing \"; a blank must stand between patterns"));
    }
    rule.conditions.push_back(*std::move(condition));
  }
  if (rule.conditions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("which frames are '", name, "'? Say so behind it: ", name, " file=*/mine/*"));
  }
  return rule;
}

absl::StatusOr<FrameRules> FrameRules::Parse(std::string_view text, const std::string& name) {
  FrameRules rules;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = WithoutLeadingBlanks(TakeUntil("\n", &text));
    if (!text.empty()) text.remove_prefix(1);
    if (line.empty() || line.front() == '#') continue;
    auto rule = ParseRule(line);
    if (!rule.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", number, ": ", rule.status().message()));
    }
    rules.rules_.push_back(*std::move(rule));
  }
  return rules;
}

const FrameRules& FrameRules::BuiltIn() {
  // A test reads the same text; were it wrong, nothing would be folded.
  static const FrameRules* const rules =
      new FrameRules(Parse(BuiltInFrameRules(), "frame_rules.txt").value_or(FrameRules()));
  return *rules;
}

const FrameRules& FrameRules::None() {
  static const FrameRules* const rules = new FrameRules();
  return *rules;
}

absl::StatusOr<FrameRules> FrameRules::WithFile(const std::string& path) {
  std::string text;
  if (!ReadWhole(path, &text)) {
    return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  }
  auto rules = Parse(text, path);
  if (!rules.ok()) return rules.status();
  rules->rules_.insert(rules->rules_.end(), BuiltIn().rules_.begin(), BuiltIn().rules_.end());
  return rules;
}

bool FrameRules::Fits(const Rule& rule, const FrameView& frame) {
  for (const Condition& condition : rule.conditions) {
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

FrameRole FrameRules::RoleOf(const FrameView& frame) const {
  for (const Rule& rule : rules_) {
    if (Fits(rule, frame)) return rule.role;
  }
  return FrameRole::kOwn;
}

}  // namespace gmt::symbols
