#include "symbols/frame_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "symbols/builtin_frame_rules.h"
#include "symbols/demangle.h"

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

}  // namespace

std::string_view RoleName(FrameRole role) {
  for (const auto& [name, known] : kRoles) {
    if (known == role) return name;
  }
  return "";
}

absl::StatusOr<FrameRules::Rule> FrameRules::ParseRule(std::string_view line) {
  const std::string word = TakeRuleName(&line);
  const std::optional<FrameRole> role = RoleNamed(word);
  if (!role) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown role '", word, "'; known roles: ", AllRoles()));
  }
  auto pattern = FramePattern::Parse(line, word);
  if (!pattern.ok()) return pattern.status();
  return Rule{*role, *std::move(pattern)};
}

absl::StatusOr<FrameRules> FrameRules::Parse(std::string_view text, const std::string& name) {
  FrameRules rules;
  const absl::Status status = ForEachRule(text, name, [&](std::string_view line) {
    auto rule = ParseRule(line);
    if (rule.ok()) rules.rules_.push_back(*std::move(rule));
    return rule.status();
  });
  if (!status.ok()) return status;
  return rules;
}

const FrameRules& FrameRules::BuiltIn() {
  // A test parses the same text, so an error here, which would disable folding, cannot go
  // unnoticed.
  static const FrameRules* const rules =
      new FrameRules(Parse(BuiltInFrameRules(), "frame_rules.txt").value_or(FrameRules()));
  return *rules;
}

const FrameRules& FrameRules::None() {
  static const FrameRules* const rules = new FrameRules();
  return *rules;
}

absl::StatusOr<FrameRules> FrameRules::WithFile(const std::string& path) {
  auto text = ReadRules(path);
  if (!text.ok()) return text.status();
  auto rules = Parse(*text, path);
  if (!rules.ok()) return rules.status();
  rules->rules_.insert(rules->rules_.end(), BuiltIn().rules_.begin(), BuiltIn().rules_.end());
  return rules;
}

FrameRole FrameRules::RoleOf(const FrameView& frame) const {
  FrameView bare = frame;
  if (frame.language != "python") bare.function = WithoutReturnType(frame.function);
  const bool has_return_type = bare.function.size() != frame.function.size();
  for (const Rule& rule : rules_) {
    if (rule.pattern.Fits(bare)) return rule.role;
    if (has_return_type && rule.pattern.Fits(frame)) return rule.role;
  }
  return FrameRole::kOwn;
}

}  // namespace gmt::symbols
