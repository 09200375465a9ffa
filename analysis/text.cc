#include "analysis/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace gmt {
namespace {

// Formats three significant digits of a value below 1000 (or below 1024, with four digits and no
// fraction).
std::string ThreeDigits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

// Whether a byte begins a UTF-8 character.
bool IsFirstOfCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

struct Unit {
  int64_t ns;
  const char* name;
};

// Formats two whole units, the larger first, for durations too long for seconds.
std::string TwoUnits(int64_t ns, Unit big, Unit small) {
  return fmt::format("{} {} {} {}", ns / big.ns, big.name, ns % big.ns / small.ns, small.name);
}

constexpr int64_t kSecond = 1'000'000'000;
constexpr Unit kMinutes{60 * kSecond, "m"}, kHours{3600 * kSecond, "h"},
    kDays{86400 * kSecond, "d"};

std::string PositiveDuration(int64_t ns) {
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 999'500) return ThreeDigits(ns / 1e3) + " us";
  if (ns < 999'500'000) return ThreeDigits(ns / 1e6) + " ms";
  if (ns < 2 * kMinutes.ns) return ThreeDigits(ns / 1e9) + " s";
  if (ns < kHours.ns) return TwoUnits(ns, kMinutes, {kSecond, "s"});
  if (ns < kDays.ns) return TwoUnits(ns, kHours, kMinutes);
  return TwoUnits(ns, kDays, kHours);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the end of the number that begins at `begin`, with its unit: "34.1 MiB", "1,204", "61 %".
size_t EndOfNumber(std::string_view text, size_t begin) {
  static constexpr std::string_view kUnits[] = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB",
                                                " B",   " %",   " ns",  " us",  " ms",  " s"};
  size_t end = begin;
  while (end < text.size() &&
         (IsDigit(text[end]) || ((text[end] == '.' || text[end] == ',') && end + 1 < text.size() &&
                                 IsDigit(text[end + 1])))) {
    ++end;
  }
  for (const std::string_view unit : kUnits) {
    if (text.substr(end).starts_with(unit)) return end + unit.size();
  }
  return end;
}

// Returns a position up to `cut` that does not split a number: before the number, its sign and the
// spaces before it. A number at the beginning of the text is cut.
size_t OutsideNumbers(std::string_view text, size_t cut) {
  for (size_t begin = 0; begin < cut;) {
    if (!IsDigit(text[begin])) {
      ++begin;
      continue;
    }
    const size_t end = EndOfNumber(text, begin);
    if (end > cut) {
      const size_t last = text.substr(0, begin).find_last_not_of(" +-");
      return last == std::string_view::npos ? cut : last + 1;
    }
    begin = end;
  }
  return cut;
}

}  // namespace

std::string Bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // Values of 999.5 and above would be rounded to four digits.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", ThreeDigits(value), kUnits[unit]);
}

std::string SignedBytes(int64_t bytes) {
  if (bytes == 0) return "0 B";
  const uint64_t magnitude =
      bytes < 0 ? 0 - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
  return (bytes < 0 ? "-" : "+") + Bytes(magnitude);
}

std::string Percent(double part, double whole) {
  if (whole == 0) return "-";
  const double percent = 100 * part / whole;
  if (percent > 0 && percent < 1) return "<1 %";
  return fmt::format("{:.0f} %", percent);
}

std::string Duration(int64_t ns) {
  return ns < 0 ? "-" + PositiveDuration(-ns) : PositiveDuration(ns);
}

std::string Count(uint64_t count) {
  if (count < 1000) return fmt::format("{}", count);
  return fmt::format("{},{:03}", Count(count / 1000), count % 1000);
}

std::string Plural(uint64_t count, const char* singular) {
  std::string_view word = singular;
  if (count == 1) return fmt::format("{} {}", Count(count), word);
  if (!word.ends_with("ry")) return fmt::format("{} {}s", Count(count), word);
  word.remove_suffix(1);  // "library"
  return fmt::format("{} {}ies", Count(count), word);
}

std::string Shortened(const std::string& text, size_t columns) {
  constexpr size_t kDots = 3;
  columns = std::max(columns, kDots + 1);
  size_t characters = 0, cut = 0;  // `cut`: where the text ends if there must be room for the dots
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsFirstOfCharacter(text[i])) continue;
    if (characters + kDots == columns) cut = i;
    if (++characters > columns) return text.substr(0, OutsideNumbers(text, cut)) + "...";
  }
  return text;
}

std::string Wrapped(const std::string& text, size_t columns, const std::string& indent) {
  const auto width = [](std::string_view part) {
    return static_cast<size_t>(std::count_if(part.begin(), part.end(), IsFirstOfCharacter));
  };
  std::string wrapped;
  std::string line = text.substr(0, text.find_first_not_of(' '));
  bool is_empty = true;  // whether the line has no word yet
  for (size_t at = line.size(); at < text.size();) {
    // A part ends at a space that does not follow a digit.
    size_t end = text.find(' ', at);
    while (end != std::string::npos && IsDigit(text[end - 1])) end = text.find(' ', end + 1);
    end = std::min(end, text.size());
    const std::string_view part(text.data() + at, end - at);
    if (!is_empty && width(line) + 1 + width(part) > columns) {
      wrapped += line + "\n";
      line = indent;
      is_empty = true;
    }
    if (!is_empty) line += ' ';
    line += part;
    is_empty = false;
    at = end + 1;
  }
  return wrapped + line;
}

std::string Address(uint64_t address) { return fmt::format("{:#x}", address); }

}  // namespace gmt
