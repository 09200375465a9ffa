#include "answers/ranks/ranks_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/text.h"
#include "answers/json.h"
#include "answers/ranks/digest_file.h"

namespace gmt::answers {
namespace {

constexpr size_t kRanksShown = 8, kOutliersShown = 2, kPartsShown = 5, kStacksShown = 3;
// A line is shown if its bytes differ by at least this much.
constexpr uint64_t kMinOfStack = kMinDifference / 8;
// The width of all columns but the first, which has the name.
constexpr size_t kNumbersWidth = 68, kNarrowestName = 8, kWidestName = 40;

std::string CapitalizedName(const RankRow& row) {
  std::string name = row.name;
  if (row.digest.rank) name[0] = 'R';
  return name;
}

std::string Peaks(const RankComparison& comparison) {
  const std::string least = Bytes(comparison.peak_bytes.least),
                    most = Bytes(comparison.peak_bytes.most);
  return least == most ? most : fmt::format("{} to {}", least, most);
}

std::string VerdictOf(const RankComparison& comparison) {
  const size_t count = comparison.rows.size();
  if (count == 1)
    return fmt::format("Only one recording: {} has a peak of {}", comparison.rows[0].name,
                       Peaks(comparison));
  if (comparison.outliers.empty())
    return fmt::format("{} ranks agree: peak {}", count, Peaks(comparison));
  const RankRow& row = comparison.rows[comparison.outliers.front()];
  std::string text = CapitalizedName(row);
  if (row.delta_bytes != 0 && static_cast<uint64_t>(std::abs(row.delta_bytes)) >= kMinDifference) {
    text += fmt::format(
        " has a peak of {}, {} {} than {}", Bytes(row.digest.peak_bytes),
        Bytes(static_cast<uint64_t>(std::abs(row.delta_bytes))),
        row.delta_bytes > 0 ? "more" : "less",
        count == 2 ? std::string("the other rank") : fmt::format("the median of {} ranks", count));
  } else {
    text += " differs";
  }
  if (!row.causes.empty()) text += ": " + row.causes.front();
  if (comparison.outliers.size() > 1)
    text += fmt::format("; {} more differ{}", comparison.outliers.size() - 1,
                        comparison.outliers.size() == 2 ? "s" : "");
  return text;
}

// Names a rank in at most `width` columns: paths of recordings mostly differ at their end.
std::string ShortName(const RankRow& row, size_t width) {
  if (row.name.size() <= width || row.digest.rank) return Shortened(row.name, width);
  return Shortened(row.name.substr(row.name.rfind('/') + 1), width);
}

// What the ranks hold at their peaks: the parts whose least and most are furthest apart.
std::string SpreadText(const RankComparison& comparison) {
  std::vector<std::pair<std::string, Spread>> parts;
  for (size_t i = 0; i < analysis::kCategories; ++i) {
    const auto category = static_cast<analysis::Category>(i);
    parts.emplace_back(TextOf(category), comparison.categories[i]);
  }
  for (const auto& [name, spread] : comparison.libraries)
    parts.emplace_back("outside: " + name, spread);
  std::erase_if(parts, [](const auto& part) { return part.second.most == part.second.least; });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.second.most - a.second.least > b.second.most - b.second.least;
  });
  parts.resize(std::min(parts.size(), kPartsShown));
  parts.insert(parts.begin(),
               {{"peak", comparison.peak_bytes}, {"reserved", comparison.reserved_bytes}});
  std::string text = fmt::format("{:<30}{:>11}{:>11}{:>11}\n", "", "least", "median", "most");
  for (const auto& [name, spread] : parts) {
    text += fmt::format("{:<30}{:>11}{:>11}{:>11}\n", Shortened(name, 29), Bytes(spread.least),
                        Bytes(spread.median), Bytes(spread.most));
  }
  return text;
}

// Those that differ, then the others, in the order of ranks.
std::vector<const RankRow*> RowsShown(const RankComparison& comparison, size_t top) {
  std::vector<const RankRow*> rows;
  for (const bool differs : {true, false}) {
    for (const RankRow& row : comparison.rows) {
      if (row.differs == differs && rows.size() < top) rows.push_back(&row);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

nlohmann::ordered_json SpreadJson(const Spread& spread) {
  return {{"min", spread.least}, {"median", spread.median}, {"max", spread.most}};
}

nlohmann::ordered_json SpreadsJson(const RankComparison& comparison) {
  nlohmann::ordered_json categories = nlohmann::ordered_json::object(),
                         libraries = nlohmann::ordered_json::object();
  for (size_t i = 0; i < analysis::kCategories; ++i) {
    const Spread& spread = comparison.categories[i];
    if (spread.most > 0)
      categories[std::string(NameOf(static_cast<analysis::Category>(i)))] = SpreadJson(spread);
  }
  for (const auto& [name, spread] : comparison.libraries) libraries[name] = SpreadJson(spread);
  return {{"peak_bytes", SpreadJson(comparison.peak_bytes)},
          {"reserved_bytes", SpreadJson(comparison.reserved_bytes)},
          {"retries", SpreadJson(comparison.retries)},
          {"categories", std::move(categories)},
          {"outside", std::move(libraries)}};
}

nlohmann::ordered_json StacksJson(const RankRow& row) {
  nlohmann::ordered_json stacks = nlohmann::ordered_json::array();
  for (const StackDifference& line : row.stacks) {
    stacks.push_back(
        {{"stack", line.stack}, {"bytes", line.bytes}, {"median_bytes", line.median_bytes}});
  }
  return stacks;
}

nlohmann::ordered_json DifferingStepsJson(const RankRow& row) {
  if (!row.differing_steps) return nullptr;
  return {row.differing_steps->first, row.differing_steps->second};
}

nlohmann::ordered_json ByStepJson(const StepGroups& by_step) {
  return {{"steps_per_group", by_step.steps_per_group},
          {"peak_bytes", by_step.peak_bytes},
          {"categories", by_step.categories},
          {"stacks", by_step.stacks}};
}

nlohmann::ordered_json RankJson(const RankRow& row) {
  const RankDigest& digest = row.digest;
  nlohmann::ordered_json categories = nlohmann::ordered_json::object();
  for (size_t i = 0; i < analysis::kCategories; ++i) {
    if (digest.categories[i] > 0)
      categories[std::string(NameOf(static_cast<analysis::Category>(i)))] = digest.categories[i];
  }
  nlohmann::ordered_json leak;
  if (digest.leak) {
    leak = {{"bytes_per_step", digest.leak->bytes_per_step},
            {"place", OrNull(digest.leak->place)},
            {"likely", digest.leak->is_likely},
            {"eta_ns", OrNull(digest.leak->eta_ns)}};
  }
  return {{"rank", OrNull(digest.rank)},
          {"host", OrNull(digest.host)},
          {"file", digest.file},
          {"pid", digest.pid == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(digest.pid)},
          {"device", digest.device},
          {"peak_bytes", digest.peak_bytes},
          {"peak_t_ns", digest.peak_t_ns},
          {"delta_bytes", row.delta_bytes},
          {"reserved_bytes", digest.reserved_bytes},
          {"categories", categories},
          {"outside", digest.libraries},
          {"steps", digest.steps},
          {"retries", digest.retries},
          {"failures", digest.failures},
          {"leak", leak},
          {"differs", row.differs},
          {"differing_steps", DifferingStepsJson(row)},
          {"causes", row.causes},
          {"stacks", StacksJson(row)}};
}

// The lines that differ most, but not the one that is a cause.
std::vector<std::string> FurtherStacks(const RankRow& row) {
  std::vector<std::string> texts;
  for (const StackDifference& line : row.stacks) {
    const int64_t delta =
        static_cast<int64_t>(line.bytes) - static_cast<int64_t>(line.median_bytes);
    std::string text = fmt::format("{} by {}", SignedBytes(delta), line.stack);
    const bool is_cause = std::find(row.causes.begin(), row.causes.end(), text) != row.causes.end();
    if (!is_cause && static_cast<uint64_t>(std::abs(delta)) >= kMinOfStack)
      texts.push_back(std::move(text));
  }
  texts.resize(std::min(texts.size(), kStacksShown));
  return texts;
}

}  // namespace

RanksAnswer::RanksAnswer(JobDigests digests, std::vector<std::string> unread,
                         std::vector<std::string> unused)
    : comparison_(CompareRanks(std::move(digests))),
      unread_(std::move(unread)),
      unused_(std::move(unused)) {}

std::string RanksAnswer::Verdict() const { return VerdictOf(comparison_); }

std::string RanksAnswer::Text(const Terminal& terminal, size_t top) const {
  const auto width = static_cast<size_t>(std::max(terminal.width, 40));
  std::string text = terminal.Bold(Wrapped(Verdict(), width, "  ")) + "\n";
  const auto line = [&text, width](const std::string& words) {
    text += Shortened(words, width) + "\n";
  };
  const auto sentence = [&text, width](const std::string& words) {
    text += Wrapped(words, width, "    ") + "\n";
  };
  if (comparison_.next_to_fail && comparison_.rows.size() > 1) {
    sentence(fmt::format("next to run out: {}, {}",
                         comparison_.rows[*comparison_.next_to_fail].name, comparison_.why_next));
  }
  text += "\n";
  const std::vector<const RankRow*> rows = RowsShown(comparison_, top == 0 ? kRanksShown : top);
  const size_t room = width - std::min(width, kNumbersWidth);
  const size_t widest = std::clamp(room, kNarrowestName, kWidestName);
  size_t name_width = 4;
  for (const RankRow* row : rows) name_width = std::max(name_width, ShortName(*row, widest).size());
  line(fmt::format("{:<{}}  GPU        peak  from median    reserved   steps  retries", "rank",
                   name_width));
  for (const RankRow* row : rows) {
    const RankDigest& digest = row->digest;
    line(fmt::format("{:<{}}  {:>3}  {:>10}  {:>11}  {:>10}  {:>6}  {:>7}{}",
                     ShortName(*row, widest), name_width, digest.device, Bytes(digest.peak_bytes),
                     SignedBytes(row->delta_bytes), Bytes(digest.reserved_bytes), digest.steps,
                     digest.retries, row->differs ? "  differs" : ""));
  }
  if (rows.size() < comparison_.rows.size())
    line(fmt::format("and {} more: --top {}", comparison_.rows.size() - rows.size(),
                     comparison_.rows.size()));
  line("peak: the most that a rank took from the driver at one moment");
  // With two ranks, the median would be the least.
  if (comparison_.rows.size() > 2) text += "\n" + SpreadText(comparison_);
  const size_t explained = top == 0 ? kOutliersShown : comparison_.outliers.size();
  for (size_t i = 0; i < std::min(explained, comparison_.outliers.size()); ++i) {
    const RankRow& row = comparison_.rows[comparison_.outliers[i]];
    text += "\n";
    line(fmt::format("{}, {}", row.name, row.digest.file));
    for (const std::string& cause : row.causes) sentence("  " + cause);
    for (const std::string& stack : FurtherStacks(row)) sentence("  also " + stack);
  }
  if (!unread_.empty()) {
    text += "\nNot read\n";
    for (const std::string& words : unread_) sentence("  " + words);
  }
  return text + NextCommand();
}

// Names a command only for recordings that are here.
std::string RanksAnswer::NextCommand() const {
  const std::vector<size_t>& outliers = comparison_.outliers;
  const std::vector<RankRow>& rows = comparison_.rows;
  const size_t chosen = outliers.empty() ? 0 : outliers.front();
  const std::string& file = rows[chosen].digest.file;
  if (RecordingOfDigest(file)) return "";
  const std::string& other = rows[chosen == 0 && rows.size() > 1 ? 1 : 0].digest.file;
  if (rows.size() > 1 && !outliers.empty() && !RecordingOfDigest(other))
    return fmt::format("\nNext: gpumemtrace diff {} {}\n", other, file);
  return fmt::format("\nNext: gpumemtrace report {}\n", file);
}

std::string RanksAnswer::Json() const {
  std::string json;
  WriteJson([&json](std::string_view part) { json += part; });
  return json;
}

void RanksAnswer::WriteJson(const std::function<void(std::string_view)>& write) const {
  nlohmann::ordered_json before = NewJson("ranks", "");
  before["median_peak_bytes"] = comparison_.peak_bytes.median;
  before["spread"] = SpreadsJson(comparison_);
  const auto rank = [this](size_t row) {
    nlohmann::ordered_json json = RankJson(comparison_.rows[row]);
    if (comparison_.has_steps) json["by_step"] = ByStepJson(comparison_.rows[row].digest.by_step);
    return json;
  };
  const nlohmann::ordered_json after = {{"outliers", comparison_.outliers},
                                        {"next_to_fail", OrNull(comparison_.next_to_fail)},
                                        {"unread", unread_},
                                        {"unused_digests", unused_}};
  answers::WriteJson(before, "ranks", comparison_.rows.size(), rank, after, write);
}

}  // namespace gmt::answers
