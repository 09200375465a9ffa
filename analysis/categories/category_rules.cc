#include "analysis/categories/category_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace gmt::analysis {
namespace {

constexpr uint8_t kAll = 0xff;

constexpr uint8_t Bit(Lifespan life) { return static_cast<uint8_t>(1u << static_cast<int>(life)); }
constexpr uint8_t Bit(Born born) { return static_cast<uint8_t>(1u << static_cast<int>(born)); }

struct Word {
  std::string_view name;
  uint8_t bits;
};

// Memory not freed when the recording ends may have any life but the shortest.
constexpr std::array kLives = {
    Word{"phase", Bit(Lifespan::kPhase) | Bit(Lifespan::kPass)},
    Word{"phases", Bit(Lifespan::kAcross) | Bit(Lifespan::kOpen)},
    Word{"steps", Bit(Lifespan::kSteps) | Bit(Lifespan::kOpen)},
    Word{"long", Bit(Lifespan::kLong) | Bit(Lifespan::kOpen)},
};
constexpr std::array kBorn = {
    Word{"start", Bit(Born::kStart)},
    Word{"forward", Bit(Born::kForward)},
    Word{"backward", Bit(Born::kBackward)},
    Word{"optimizer", Bit(Born::kOptimizer)},
};

std::optional<Category> CategoryNamed(std::string_view word) {
  for (size_t i = 0; i < kCategories; ++i) {
    if (NameOf(static_cast<Category>(i)) == word) return static_cast<Category>(i);
  }
  return std::nullopt;
}

std::string AllCategories() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kCategories; ++i) names.emplace_back(NameOf(static_cast<Category>(i)));
  return absl::StrJoin(names, ", ");
}

void SkipBlanks(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(" \t\r"), line->size()));
}

// Removes "KEY=WORD,WORD" from the beginning of *line; returns all bits if it is absent.
template <size_t N>
absl::StatusOr<uint8_t> TakeBits(std::string_view key, const std::array<Word, N>& words,
                                 std::string_view* line) {
  SkipBlanks(line);
  if (!line->starts_with(key)) return kAll;
  line->remove_prefix(key.size());
  const std::string list(line->substr(0, line->find_first_of(" \t\r")));
  line->remove_prefix(list.size());
  uint8_t bits = 0;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(list, ','))) {
    const auto word =
        std::find_if(words.begin(), words.end(), [&](const Word& w) { return w.name == part; });
    if (word == words.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(key), " has no '", part,
          "'; there are: ", absl::StrJoin(words, ", ", [](std::string* out, const Word& w) {
            out->append(w.name);
          })));
    }
    bits |= word->bits;
  }
  return bits;
}

absl::StatusOr<CategoryRule> ParseRule(std::string_view line) {
  const std::string word = symbols::TakeRuleName(&line);
  const std::optional<Category> category = CategoryNamed(word);
  if (!category) {
    return absl::InvalidArgumentError(
        absl::StrCat("no category is called '", word, "'; there are: ", AllCategories()));
  }
  CategoryRule rule;
  rule.category = *category;
  rule.lives = rule.born = kAll;
  for (int i = 0; i < 2; ++i) {  // in either order
    const auto lives = TakeBits("lives=", kLives, &line);
    if (!lives.ok()) return lives.status();
    const auto born = TakeBits("born=", kBorn, &line);
    if (!born.ok()) return born.status();
    rule.lives &= *lives;
    rule.born &= *born;
  }
  auto pattern = symbols::FramePattern::Parse(line, word);
  if (!pattern.ok()) return pattern.status();
  rule.pattern = *std::move(pattern);
  return rule;
}

}  // namespace

absl::StatusOr<CategoryRules> CategoryRules::Parse(std::string_view text, const std::string& name) {
  CategoryRules rules;
  const absl::Status status = symbols::ForEachRule(text, name, [&](std::string_view line) {
    auto rule = ParseRule(line);
    if (rule.ok()) rules.rules_.push_back(*std::move(rule));
    return rule.status();
  });
  if (!status.ok()) return status;
  return rules;
}

const CategoryRules& CategoryRules::BuiltIn() {
  // A test parses the same text. If parsing failed, only lives and sizes would be used.
  static const CategoryRules* const rules = new CategoryRules(
      Parse(BuiltInCategoryRules(), "category_rules.txt").value_or(CategoryRules()));
  return *rules;
}

absl::StatusOr<CategoryRules> CategoryRules::WithFile(const std::string& path) {
  auto text = symbols::ReadRules(path);
  if (!text.ok()) return text.status();
  auto rules = Parse(*text, path);
  if (!rules.ok()) return rules.status();
  for (CategoryRule& rule : rules->rules_) rule.is_users = true;
  rules->rules_.insert(rules->rules_.end(), BuiltIn().rules_.begin(), BuiltIn().rules_.end());
  return rules;
}

}  // namespace gmt::analysis
