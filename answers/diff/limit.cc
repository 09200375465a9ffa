#include "answers/diff/limit.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gmt::answers {
namespace {

constexpr double kMaxBytes = 9.2e18;

// Returns 0 if there is no such unit.
double UnitBytes(std::string unit) {
  absl::AsciiStrToLower(&unit);
  static constexpr std::pair<const char*, double> kUnits[] = {{"", 1},
                                                              {"b", 1},
                                                              {"kib", 1024.},
                                                              {"mib", 1024. * 1024},
                                                              {"gib", 1073741824.},
                                                              {"tib", 1099511627776.},
                                                              {"kb", 1e3},
                                                              {"mb", 1e6},
                                                              {"gb", 1e9},
                                                              {"tb", 1e12}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name) return bytes;
  }
  return 0;
}

}  // namespace

absl::StatusOr<Limit> ParseLimit(absl::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const size_t digits = std::min(trimmed.find_first_not_of("0123456789."), trimmed.size());
  const std::string unit(absl::StripAsciiWhitespace(trimmed.substr(digits)));
  double number = 0;
  Limit limit;
  if (digits > 0 && absl::SimpleAtod(trimmed.substr(0, digits), &number)) {
    if (unit == "%") {
      limit.percent = number;
      return limit;
    }
    const double bytes = number * UnitBytes(unit);
    if (UnitBytes(unit) > 0 && bytes < kMaxBytes) {
      limit.bytes = static_cast<uint64_t>(std::llround(bytes));
      return limit;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a limit. Use 10GiB, 512MB, a number of bytes, or 80%"));
}

}  // namespace gmt::answers
