#include "tests/evaluate/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace gmt::evaluate {
namespace {

constexpr uint64_t kMaxSeeds = 1'000'000;
constexpr uint64_t kMissedShown = 50;

void PrintUsage(const Question& question, std::FILE* file) {
  fmt::print(file,
             "Usage: evaluate_{0} [--seeds N] [--seed N]... [--tune] [--quick]\n"
             "  --seeds N  use the seeds 1, 3, ..., 2N-1 (default: N = {1})\n"
             "  --seed N   use this seed; can be repeated; goals are not judged\n"
             "  --tune     use the even seeds 2, 4, ..., 2N, which rules are developed with\n"
             "  --quick    use {2} seeds\n"
             "Prints the section of docs/accuracy.md. Exits with 1 if a goal is missed.\n",
             question.name, question.seeds, question.quick_seeds);
}

[[noreturn]] void EndWithUsage(const Question& question, const std::string& problem) {
  fmt::print(stderr, "evaluate_{}: {}\n", question.name, problem);
  PrintUsage(question, stderr);
  std::exit(2);
}

// Escapes a text so that it does not end its table cell.
std::string Cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

std::string Row(const std::vector<std::string>& cells) {
  return "| " +
         absl::StrJoin(cells, " | ",
                       [](std::string* out, const std::string& cell) { *out += Cell(cell); }) +
         " |\n";
}

}  // namespace

std::string Rate::text() const { return fmt::format("{:.3f} ({} of {})", value(), right, all); }

std::pair<double, double> Rate::bounds() const {
  if (all == 0) return {0, 1};
  constexpr double kZ = 1.959964;  // the 97.5 % quantile of the normal distribution
  const double n = static_cast<double>(all), p = value(), z2 = kZ * kZ;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kZ / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::string Rate::interval() const {
  return all == 0 ? "0-1" : fmt::format("{:.3f}-{:.3f}", lower(), upper());
}

Evaluation::Evaluation(Question question, int argc, const char* const* argv)
    : question_(std::move(question)) {
  Parse(argc, argv);
  MakeSeeds();
}

void Evaluation::Parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-h" || word == "--help") {
      PrintUsage(question_, stdout);
      std::exit(0);
    } else if (word == "--tune") {
      tune_ = true;
    } else if (word == "--quick") {
      quick_ = true;
    } else if (word == "--seed" || word == "--seeds") {
      uint64_t number = 0;
      if (i + 1 == argc || !absl::SimpleAtoi(absl::string_view(argv[i + 1]), &number) ||
          number == 0 || (word == "--seeds" && number > kMaxSeeds)) {
        EndWithUsage(question_, fmt::format("{} needs a number, 1 or more", word));
      }
      ++i;
      if (word == "--seeds") {
        count_ = number;
      } else {
        seeds_.push_back(number);
        repeat_ = true;
      }
    } else {
      EndWithUsage(question_, fmt::format("there is no option '{}'", word));
    }
  }
}

void Evaluation::MakeSeeds() {
  if (repeat_) return;
  const uint64_t count = count_.value_or(quick_ ? question_.quick_seeds : question_.seeds);
  for (uint64_t i = 0; i < count; ++i) seeds_.push_back(2 * i + (tune_ ? 2 : 1));
}

void Evaluation::Missed(uint64_t seed, const std::string& what) {
  ++missed_;
  if (missed_ <= kMissedShown || repeat_) {
    fmt::print(stderr, "evaluate_{} --seed {}: {}\n", question_.name, seed, what);
  } else if (missed_ == kMissedShown + 1) {
    fmt::print(stderr, "evaluate_{}: further misses are not listed\n", question_.name);
  }
}

void Evaluation::Text(const std::string& paragraph) { section_ += paragraph + "\n\n"; }

void Evaluation::Heading(const std::string& heading) { section_ += "### " + heading + "\n\n"; }

void Evaluation::Table(const std::vector<std::string>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  section_ += Row(columns) + Row(std::vector<std::string>(columns.size(), "---"));
  for (const std::vector<std::string>& row : rows) section_ += Row(row);
  section_ += "\n";
}

void Evaluation::AtLeast(const std::string& what, const Rate& measured, double goal) {
  goals_.push_back({what, fmt::format("{}, 95 %: {}", measured.text(), measured.interval()),
                    fmt::format(">= {:g}", goal),
                    measured.value() >= goal || (quick_ && measured.upper() >= goal)});
}

void Evaluation::AtLeast(const std::string& what, double measured, double goal) {
  goals_.push_back(
      {what, fmt::format("{:.3g}", measured), fmt::format(">= {:g}", goal), measured >= goal});
}

void Evaluation::AtMost(const std::string& what, double measured, double goal) {
  goals_.push_back(
      {what, fmt::format("{:.3g}", measured), fmt::format("<= {:g}", goal), measured <= goal});
}

void Evaluation::Holds(const std::string& what, bool holds) {
  goals_.push_back({what, holds ? "yes" : "no", "yes", holds});
}

void Evaluation::Shown(const std::string& what, const std::string& measured) {
  goals_.push_back({what, measured, "", std::nullopt});
}

int Evaluation::Finish() {
  bool met = true;
  std::vector<std::vector<std::string>> rows;
  for (const Goal& goal : goals_) {
    const bool judged = goal.met.has_value() && !repeat_;
    if (judged && !*goal.met) {
      met = false;
      fmt::print(stderr, "evaluate_{}: goal missed: {}: {}, the goal is {}\n", question_.name,
                 goal.what, goal.measured, goal.goal);
    }
    rows.push_back({goal.what, goal.measured, goal.goal,
                    !judged     ? ""
                    : *goal.met ? "met"
                                : "**MISSED**"});
  }
  if (!rows.empty()) Table({"measured", "value", "goal", ""}, rows);
  fmt::print("## {}\n\n{}`evaluate_{} --seeds {}{}`\n", question_.title, section_, question_.name,
             seeds_.size(), tune_ ? " --tune" : "");
  return met ? 0 : 1;
}

}  // namespace gmt::evaluate
