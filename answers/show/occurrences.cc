// Ranges and marks of one name: how often they occurred, how long they lasted, and what they left
// allocated.

#include "analysis/show/occurrences.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analysis/median.h"
#include "analysis/show/selection.h"
#include "analysis/text.h"
#include "analysis/trace/recorded_time.h"
#include "answers/show/show.h"

namespace gmt::answers {
namespace {

using analysis::Occurrence;
using analysis::Occurrences;
using analysis::Subject;
using Json = nlohmann::ordered_json;

int64_t Lasted(const Occurrence& one) {
  return static_cast<int64_t>(
      std::min<uint64_t>(analysis::Between(one.begin_t_ns, one.end_t_ns), INT64_MAX));
}

std::string HeadlineOf(const Occurrences& found) {
  std::vector<int64_t> lengths, changes;
  for (const Occurrence& one : found.all) {
    lengths.push_back(Lasted(one));
    changes.push_back(one.change());
  }
  const int64_t change = analysis::UpperMedian(std::move(changes));
  return fmt::format("{} {} occurred {}, {} {} (median); median change on {}: {}",
                     found.is_range ? "range" : "mark", found.name,
                     Plural(found.all.size(), "time"), found.is_range ? "lasting" : "every",
                     Duration(analysis::UpperMedian(std::move(lengths))), PlaceName(found.device),
                     change == 0 ? "none" : SignedBytes(change));
}

std::string LineOf(const Occurrences& found, size_t i) {
  const Occurrence& one = found.all[i];
  const std::string number =
      one.index ? fmt::format("{} ({})", i + 1, *one.index) : fmt::format("{}", i + 1);
  return fmt::format("  {:<12} {:>9} {:>9} {:>12} {:>10}  {}", number, Duration(one.begin_t_ns),
                     Duration(Lasted(one)), SignedBytes(one.change()), Bytes(one.peak),
                     one.whole         ? ""
                     : !found.is_range ? "to the end of the recording"
                                       : "incomplete");
}

// Returns the occurrences with the largest growth.
std::vector<size_t> Chosen(const Occurrences& found, size_t top) {
  std::vector<size_t> order(found.all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return found.all[a].change() > found.all[b].change();
  });
  order.resize(std::min(order.size(), 2 * top));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

ShowResult ShowOccurrences(const ShowInput& input, const Subject& subject) {
  const Occurrences found =
      FindOccurrences(input.examination, subject.name, subject.kind != Subject::kMark,
                      subject.kind != Subject::kRange);
  if (found.all.empty()) {
    if (subject.kind != Subject::kNamed) return NoSuch(input, subject);
    return NoSuch(
        input, subject,
        fmt::format("'{}' is neither an ID nor the name of a range or mark. IDs are printed by "
                    "other answers: stack/7, thread/11, leak/1, step/12, snapshot/exit, event/123, "
                    "block/0x7f00, device/0, range/NAME, ...",
                    subject.name));
  }
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  ShowPage& page = answer.page;
  const std::string headline = HeadlineOf(found);
  page.Headline(headline);
  const uint32_t stack = found.all.front().stack;
  if (stack != 0) {
    page.Fact("made by",
              fmt::format("{}   {}", StackName(input, stack, page.width() - 30), StackId(stack)));
  }
  const std::vector<size_t> chosen = Chosen(found, input.top);
  page.Part(chosen.size() == found.all.size()
                ? "All of them"
                : fmt::format("The {} of {} with the largest change", chosen.size(),
                              Count(found.all.size())));
  page.Line(fmt::format("  {:<12} {:>9} {:>9} {:>12} {:>10}", "number", "at", "lasted", "change",
                        "peak"));
  for (const size_t i : chosen) page.Line(LineOf(found, i));
  const Occurrence& most = *std::max_element(
      found.all.begin(), found.all.end(),
      [](const Occurrence& a, const Occurrence& b) { return a.change() < b.change(); });
  page.Next("report", fmt::format("--at event:{}", most.end));
  answer.json = {{"id", subject.id()},
                 {"kind", found.is_range ? "range" : "mark"},
                 {"what", headline},
                 {"name", found.name},
                 {"device", DeviceJson(found.device)},
                 {"occurrences", Json::array()}};
  for (const Occurrence& one : found.all) {
    answer.json["occurrences"].push_back({{"begin_t_ns", one.begin_t_ns},
                                          {"end_t_ns", one.end_t_ns},
                                          {"whole", one.whole},
                                          {"index", one.index ? Json(*one.index) : Json(nullptr)},
                                          {"live_begin_bytes", one.live_begin},
                                          {"live_end_bytes", one.live_end},
                                          {"peak_bytes", one.peak}});
  }
  return answer;
}

}  // namespace gmt::answers
