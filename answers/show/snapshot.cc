// A named moment: what was held then, and which allocation failed.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/show/changes.h"
#include "analysis/text.h"
#include "answers/show/show.h"

namespace gmt::answers {
namespace {

using analysis::FailedAllocation;
using analysis::NamedInstant;
using analysis::StackChange;
using analysis::Subject;
using Json = nlohmann::ordered_json;

const NamedInstant* Find(const ShowInput& input, const std::string& name) {
  for (const NamedInstant& snapshot : input.trace().snapshots) {
    if (snapshot.name == name) return &snapshot;
  }
  return nullptr;
}

struct DeviceHeld {
  int32_t device = 0;
  uint64_t bytes = 0, count = 0;  // each byte is counted once
};

std::vector<DeviceHeld> HeldAt(const ShowInput& input, analysis::Step step) {
  std::vector<DeviceHeld> held;
  const analysis::Rows& rows = input.trace().rows;
  for (const analysis::RowId row : HeldAfter(input.trace(), step)) {
    const bool inner =
        rows.heap[row] > analysis::kHostHeap && (rows.flags[row] & analysis::kRowUnbacked) == 0;
    if (inner) continue;
    auto found = std::find_if(held.begin(), held.end(),
                              [&](const DeviceHeld& d) { return d.device == rows.device[row]; });
    if (found == held.end()) found = held.insert(held.end(), {rows.device[row], 0, 0});
    found->bytes += rows.size[row];
    ++found->count;
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const DeviceHeld& a, const DeviceHeld& b) { return a.bytes > b.bytes; });
  return held;
}

// Returns the last allocation that failed before it, if no event is between them.
const FailedAllocation* FailureAt(const ShowInput& input, const NamedInstant& snapshot) {
  const FailedAllocation* last = nullptr;
  for (const FailedAllocation& failed : input.trace().failed) {
    if (failed.step == snapshot.step && failed.t_ns <= snapshot.t_ns) last = &failed;
  }
  return last;
}

std::string TotalOf(const ShowInput& input, const DeviceHeld& held) {
  for (const analysis::GpuFacts& gpu : input.trace().devices) {
    if (static_cast<int32_t>(gpu.index) != held.device || gpu.total_bytes == 0) continue;
    return fmt::format(
        " of {} ({})", Bytes(gpu.total_bytes),
        Percent(static_cast<double>(held.bytes), static_cast<double>(gpu.total_bytes)));
  }
  return "";
}

}  // namespace

ShowResult ShowSnapshot(const ShowInput& input, const Subject& subject) {
  const NamedInstant* snapshot = Find(input, subject.name);
  if (snapshot == nullptr) return NoSuch(input, subject);
  const std::vector<DeviceHeld> held = HeldAt(input, snapshot->step);
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  ShowPage& page = answer.page;
  std::string headline = fmt::format("{}, taken at {}: ", subject.id(), Duration(snapshot->t_ns));
  headline += held.empty() ? "nothing was held"
                           : fmt::format("{} held {}{}", PlaceName(held.front().device),
                                         Bytes(held.front().bytes), TotalOf(input, held.front()));
  page.Headline(headline);
  for (size_t i = 1; i < held.size(); ++i) {
    page.Fact(PlaceName(held[i].device),
              fmt::format("held {}{} in {}", Bytes(held[i].bytes), TotalOf(input, held[i]),
                          Plural(held[i].count, "piece")));
  }
  const FailedAllocation* failed = FailureAt(input, *snapshot);
  if (failed != nullptr) {
    page.Fact(
        "failed",
        fmt::format("{} on {}: {}   {}", Bytes(failed->size), PlaceName(failed->device),
                    StackName(input, failed->stack, page.width() - 40), StackId(failed->stack)));
  }
  answer.json = {{"id", subject.id()},     {"kind", NameOf(subject.kind)}, {"what", headline},
                 {"t_ns", snapshot->t_ns}, {"devices", Json::array()},     {"failed", nullptr},
                 {"rows", Json::array()}};
  for (const DeviceHeld& device : held) {
    answer.json["devices"].push_back(
        {{"device", DeviceJson(device.device)}, {"bytes", device.bytes}, {"count", device.count}});
  }
  if (failed != nullptr) {
    answer.json["failed"] = {{"device", DeviceJson(failed->device)},
                             {"requested_bytes", failed->size},
                             {"id", StackId(failed->stack)}};
  }
  if (!held.empty()) {
    const auto rows = HeldByStack(input.trace(), held.front().device, snapshot->step);
    page.Part(fmt::format("Held then on {}, by stack ({} of {})", PlaceName(held.front().device),
                          std::min(rows.size(), input.top), rows.size()));
    for (size_t i = 0; i < rows.size(); ++i) {
      const StackChange& row = rows[i];
      answer.json["rows"].push_back({{"id", StackId(row.stack)},
                                     {"heap", input.trace().heaps[row.heap]},
                                     {"bytes", row.after_bytes},
                                     {"count", row.after_count}});
      if (i >= input.top) continue;
      page.Line(AmountLine(input, Bytes(row.after_bytes), Count(row.after_count), row.heap,
                           row.stack, page.width()));
    }
  }
  if (failed != nullptr) page.Next("oom", "");
  page.Next("report", fmt::format("--at snapshot:{}", subject.name));
  return answer;
}

}  // namespace gmt::answers
