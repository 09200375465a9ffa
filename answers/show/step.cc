// A step of the training loop: what it held, and what it left allocated.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/examination/failures.h"
#include "analysis/loop/phases.h"
#include "analysis/median.h"
#include "analysis/show/changes.h"
#include "analysis/text.h"
#include "analysis/trace/recorded_time.h"
#include "answers/show/show.h"

namespace gmt::answers {
namespace {

using analysis::Cycle;
using analysis::Cycles;
using analysis::CycleUse;
using analysis::DeviceCycles;
using analysis::Phase;
using analysis::PhaseUse;
using analysis::StackChange;
using analysis::Subject;
using Json = nlohmann::ordered_json;

// Returns the main device first. Only its changes are listed.
std::vector<const DeviceCycles*> DevicesOf(const ShowInput& input) {
  std::vector<const DeviceCycles*> devices;
  const int32_t main = input.examination.MainDevice();
  for (const DeviceCycles& device : input.examination.cycles().devices) devices.push_back(&device);
  std::stable_partition(devices.begin(), devices.end(),
                        [&](const DeviceCycles* device) { return device->device == main; });
  return devices;
}

uint64_t MedianPeak(const DeviceCycles& device) {
  std::vector<uint64_t> peaks;
  for (const CycleUse& use : device.cycles) peaks.push_back(use.peak);
  return analysis::UpperMedian(std::move(peaks));
}

int64_t Growth(const CycleUse& use) { return static_cast<int64_t>(use.live_end - use.live_begin); }

std::string HeadlineOf(const Subject& subject, const DeviceCycles* device, const CycleUse* use) {
  if (use == nullptr) return fmt::format("{}: nothing was held on a device", subject.id());
  return fmt::format("{}: peak {} on {}, {}; live memory changed by {}", subject.id(),
                     Bytes(use->peak), PlaceName(device->device), InPhase(use->peak_phase),
                     Growth(*use) == 0 ? "0 B" : SignedBytes(Growth(*use)));
}

std::string Phases(const CycleUse& use) {
  std::string text;
  for (size_t i = 0; i < analysis::kPhases; ++i) {
    const PhaseUse& phase = use.phases[i];
    if (!phase.present) continue;
    if (!text.empty()) text += "; ";
    const std::string times = phase.times > 1 ? fmt::format("{} x ", phase.times) : "";
    text += fmt::format("{} {}{}, peak {}", NameOf(static_cast<Phase>(i)), times,
                        SignedBytes(phase.change), Bytes(phase.peak));
  }
  return text;
}

std::string Peaks(const DeviceCycles& device, size_t index) {
  std::string text = fmt::format("{} {}", Bytes(device.cycles[index].peak),
                                 InPhase(device.cycles[index].peak_phase));
  if (index > 0) {
    text += fmt::format("; {} in the step before", Bytes(device.cycles[index - 1].peak));
  }
  return text + fmt::format("; {} is the median of all steps", Bytes(MedianPeak(device)));
}

void AddFacts(const ShowInput& input, const Cycle& cycle, size_t index,
              const std::vector<const DeviceCycles*>& devices, ShowPage& page) {
  const Cycles& cycles = input.examination.cycles();
  const auto lasted = static_cast<int64_t>(
      std::min<uint64_t>(analysis::Between(cycle.begin_t_ns, cycle.end_t_ns), INT64_MAX));
  page.Fact("time", fmt::format("{} to {} ({}); {} of {}, by {}", Duration(cycle.begin_t_ns),
                                Duration(cycle.end_t_ns), Duration(lasted), index + 1,
                                Plural(cycles.cycles.size(), "step"), cycles.source));
  page.Fact("events", fmt::format("{} allocations and frees, event/{} to event/{}",
                                  Count(cycle.end - cycle.begin), cycle.begin + 1, cycle.end));
  for (const DeviceCycles* device : devices) {
    const CycleUse& use = device->cycles[index];
    page.Fact(PlaceName(device->device),
              fmt::format("{} live at its beginning, {} at its end ({})", Bytes(use.live_begin),
                          Bytes(use.live_end), SignedBytes(Growth(use))));
    page.Fact("peak", Peaks(*device, index));
    page.Fact("phases", Phases(use));
  }
}

void AddChanges(const ShowInput& input, const std::string& heading,
                const std::vector<StackChange>& changes, ShowPage& page) {
  if (changes.empty()) return;
  page.Part(heading);
  int64_t others = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    const StackChange& change = changes[i];
    if (i >= input.top) {
      others += change.bytes();
      continue;
    }
    const auto count = static_cast<int64_t>(change.after_count - change.before_count);
    page.Line(AmountLine(input, SignedBytes(change.bytes()), fmt::format("{:+}", count),
                         change.heap, change.stack, page.width()));
  }
  if (changes.size() > input.top) {
    page.Line(fmt::format("  {:>10} {:>8}  {}", SignedBytes(others), "",
                          Plural(changes.size() - input.top, "other stack")));
  }
}

Json ChangesJson(const ShowInput& input, const std::vector<StackChange>& changes) {
  Json json = Json::array();
  for (const StackChange& change : changes) {
    json.push_back({{"id", StackId(change.stack)},
                    {"heap", input.trace().heaps[change.heap]},
                    {"delta_bytes", change.bytes()},
                    {"before_bytes", change.before_bytes},
                    {"after_bytes", change.after_bytes},
                    {"before_count", change.before_count},
                    {"after_count", change.after_count}});
  }
  return json;
}

Json UseJson(const DeviceCycles& device, const CycleUse& use) {
  Json phases = Json::object();
  for (size_t i = 0; i < analysis::kPhases; ++i) {
    if (!use.phases[i].present) continue;
    phases[std::string(NameOf(static_cast<Phase>(i)))] = {{"peak_bytes", use.phases[i].peak},
                                                          {"change_bytes", use.phases[i].change},
                                                          {"times", use.phases[i].times}};
  }
  return {{"device", DeviceJson(device.device)},  {"live_begin_bytes", use.live_begin},
          {"live_end_bytes", use.live_end},       {"peak_bytes", use.peak},
          {"peak_phase", NameOf(use.peak_phase)}, {"phases", std::move(phases)}};
}

// The step in which memory ran out has no end, so it is not one of the cycles.
bool IsUnfinished(const ShowInput& input, const Subject& subject) {
  const std::vector<Cycle>& cycles = input.examination.cycles().cycles;
  if (subject.number != cycles.size() + 1) return false;
  const auto failure = FindFailures(input.examination).decisive;
  return failure &&
         (cycles.empty() || input.trace().failed[*failure].t_ns > cycles.back().end_t_ns);
}

ShowAnswer ShowUnfinished(const ShowInput& input, const Subject& subject) {
  const analysis::FailedAllocation& failed =
      input.trace().failed[*FindFailures(input.examination).decisive];
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  const std::string what =
      fmt::format("{} did not finish: at {} an allocation of {} on {} failed", subject.id(),
                  Duration(failed.t_ns), Bytes(failed.size), PlaceName(failed.device));
  answer.page.Headline(what);
  answer.page.Next("oom", "");
  answer.page.Next("report", "--at oom");
  answer.json = {{"id", subject.id()},
                 {"kind", NameOf(subject.kind)},
                 {"what", what},
                 {"step", subject.number},
                 {"steps", input.examination.cycles().cycles.size()},
                 {"source", input.examination.cycles().source},
                 {"begin_t_ns", nullptr},
                 {"end_t_ns", nullptr},
                 {"devices", Json::array()},
                 {"changes", Json::array()}};
  return answer;
}

}  // namespace

ShowResult ShowStep(const ShowInput& input, const Subject& subject) {
  const Cycles& cycles = input.examination.cycles();
  if (subject.number == 0 || subject.number > cycles.cycles.size()) {
    if (IsUnfinished(input, subject)) return ShowUnfinished(input, subject);
    if (!cycles.cycles.empty()) return NoSuch(input, subject);
    return NoSuch(
        input, subject,
        "the recording has no steps of a training loop: no marks named 'step', no optimizer steps, "
        "no backward passes. To mark steps, see docs/pytorch.md");
  }
  const auto index = static_cast<size_t>(subject.number - 1);
  const Cycle& cycle = cycles.cycles[index];
  const std::vector<const DeviceCycles*> devices = DevicesOf(input);
  const DeviceCycles* main = devices.empty() ? nullptr : devices.front();
  const CycleUse* use = main == nullptr ? nullptr : &main->cycles[index];
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  ShowPage& page = answer.page;
  const std::string headline = HeadlineOf(subject, main, use);
  page.Headline(headline);
  AddFacts(input, cycle, index, devices, page);
  std::vector<StackChange> changes;
  if (main != nullptr) {
    changes = ChangesBetween(input.trace(), main->device, cycle.begin, cycle.end);
    AddChanges(input,
               index == 0 ? "Held at its end but not at its beginning"
                          : "Held at its end, compared with the end of the previous step",
               changes, page);
  }
  if (!changes.empty() && changes.front().stack != 0) {
    page.Next("show", StackId(changes.front().stack));
  }
  page.Next("report", fmt::format("--at step:{}", subject.number));
  answer.json = {{"id", subject.id()},
                 {"kind", NameOf(subject.kind)},
                 {"what", headline},
                 {"step", subject.number},
                 {"steps", cycles.cycles.size()},
                 {"source", cycles.source},
                 {"begin_t_ns", cycle.begin_t_ns},
                 {"end_t_ns", cycle.end_t_ns},
                 {"devices", Json::array()},
                 {"changes", ChangesJson(input, changes)}};
  for (const DeviceCycles* device : devices) {
    answer.json["devices"].push_back(UseJson(*device, device->cycles[index]));
  }
  return answer;
}

}  // namespace gmt::answers
