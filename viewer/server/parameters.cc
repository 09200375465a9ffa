#include "viewer/server/parameters.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace gmt::viewer {
namespace {

constexpr size_t kMaxParameters = 64;
constexpr size_t kMaxNameShown = 40;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = absl::ascii_tolower(static_cast<unsigned char>(c));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes application/x-www-form-urlencoded text: %XX and '+'.
std::optional<std::string> Decode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::string Shown(const std::string& text) {
  return absl::CHexEscape(
      text.size() <= kMaxNameShown ? text : absl::StrCat(text.substr(0, kMaxNameShown), "..."));
}

bool ParseInteger(absl::string_view text, uint64_t* value) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         absl::SimpleAtoi(text, value);
}

// Rejects "inf", "nan" and hexadecimal, which SimpleAtod accepts.
bool ParseNumber(absl::string_view text, double* value) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eE") == absl::string_view::npos &&
         absl::SimpleAtod(text, value) && std::isfinite(*value);
}

}  // namespace

Parameters::Parameters(absl::string_view query) {
  if (query.empty()) return;
  for (const absl::string_view pair : absl::StrSplit(query, '&')) {
    if (values_.size() == kMaxParameters) {
      Refuse(absl::StrCat("more than ", kMaxParameters, " parameters"));
      return;
    }
    Parse(pair);
  }
}

void Parameters::Parse(absl::string_view pair) {
  const size_t equals = pair.find('=');
  const auto name = Decode(pair.substr(0, equals));
  const auto value =
      Decode(equals == absl::string_view::npos ? absl::string_view() : pair.substr(equals + 1));
  if (!name || !value || name->empty()) {
    Refuse(absl::StrCat("not of the form NAME=VALUE: ", Shown(std::string(pair))));
  } else if (!values_.emplace(*name, *value).second) {
    Refuse(absl::StrCat(Shown(*name), ": given twice"));
  }
}

void Parameters::Refuse(const std::string& sentence) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(sentence);
}

const std::string* Parameters::Find(const std::string& name) {
  known_names_.insert(name);
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? nullptr : &found->second;
}

const std::string* Parameters::Require(const std::string& name) {
  const std::string* value = Find(name);
  if (value == nullptr) Refuse(absl::StrCat(name, ": missing"));
  return value;
}

std::optional<uint64_t> Parameters::OptionalInteger(const std::string& name, uint64_t min,
                                                    uint64_t max) {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  uint64_t value = 0;
  if (ParseInteger(*text, &value) && value >= min && value <= max) return value;
  Refuse(absl::StrCat(name, ": ", Shown(*text), " is not a whole number from ", min, " to ", max));
  return std::nullopt;
}

uint64_t Parameters::IntegerOr(const std::string& name, uint64_t min, uint64_t max,
                               uint64_t otherwise) {
  return OptionalInteger(name, min, max).value_or(otherwise);
}

uint64_t Parameters::Integer(const std::string& name, uint64_t min, uint64_t max) {
  return Require(name) == nullptr ? min : IntegerOr(name, min, max, min);
}

double Parameters::Number(const std::string& name) {
  const std::string* text = Require(name);
  double value = 0;
  if (text == nullptr) return 0;
  if (ParseNumber(*text, &value)) return value;
  Refuse(absl::StrCat(name, ": ", Shown(*text), " is not a finite number"));
  return 0;
}

size_t Parameters::ChoiceOr(const std::string& name, const std::vector<std::string>& values,
                            size_t otherwise) {
  const std::string* text = Find(name);
  if (text == nullptr) return otherwise;
  const auto found = std::find(values.begin(), values.end(), *text);
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  Refuse(absl::StrCat(name, ": ", Shown(*text), " is not one of ", absl::StrJoin(values, ", ")));
  return otherwise;
}

size_t Parameters::Choice(const std::string& name, const std::vector<std::string>& values) {
  Require(name);
  return ChoiceOr(name, values, 0);
}

bool Parameters::FlagOr(const std::string& name, bool otherwise) {
  return ChoiceOr(name, {"false", "true"}, otherwise ? 1 : 0) == 1;
}

std::string Parameters::Text(const std::string& name) {
  const std::string* text = Find(name);
  return text == nullptr ? "" : *text;
}

std::vector<std::string> Parameters::Texts(const std::string& name) {
  const std::string* text = Find(name);
  if (text == nullptr) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const bool fits =
      json.is_array() && json.size() <= kMaxTexts &&
      std::all_of(json.begin(), json.end(), [](const auto& each) { return each.is_string(); });
  if (fits) return json.get<std::vector<std::string>>();
  Refuse(absl::StrCat(name, ": ", Shown(*text), " is not a JSON array of at most ", kMaxTexts,
                      " strings"));
  return {};
}

std::vector<uint32_t> Parameters::Integers(const std::string& name, uint32_t max,
                                           size_t max_count) {
  std::vector<uint32_t> values;
  const std::string* text = Require(name);
  if (text == nullptr) return values;
  for (const absl::string_view word : absl::StrSplit(*text, ',')) {
    uint64_t value = 0;
    if (values.size() == max_count || !ParseInteger(word, &value) || value > max) {
      Refuse(
          absl::StrCat(name, ": not a list of at most ", max_count, " whole numbers up to ", max));
      return values;
    }
    values.push_back(static_cast<uint32_t>(value));
  }
  return values;
}

absl::Status Parameters::Finish() {
  for (const auto& [name, value] : values_) {
    if (!known_names_.contains(name)) {
      Refuse(absl::StrCat(Shown(name), ": this query has no such parameter; it has ",
                          known_names_.empty() ? "none" : absl::StrJoin(known_names_, ", ")));
    }
  }
  return status_;
}

}  // namespace gmt::viewer
