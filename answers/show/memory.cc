// Memory with something in common: a stack, a thread, a size, a suspect.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_join.h"
#include "analysis/median.h"
#include "analysis/show/life.h"
#include "analysis/show/selection.h"
#include "analysis/text.h"
#include "answers/show/life_json.h"
#include "answers/show/row.h"
#include "answers/show/show.h"
#include "answers/stacks/alive_text.h"
#include "answers/stacks/stack_json.h"

namespace gmt::answers {
namespace {

using analysis::LeakSuspect;
using analysis::Life;
using analysis::LifeAtPeak;
using analysis::LifePart;
using analysis::LifeValue;
using analysis::Subject;
using Json = nlohmann::ordered_json;

constexpr size_t kSparkColumns = 64, kPartsShown = 2, kValuesShown = 3, kCategoriesShown = 4;

const LeakSuspect* SuspectOf(const ShowInput& input, const Subject& subject) {
  for (const LeakSuspect& suspect : input.leaks.suspects) {
    if (subject.kind == Subject::kLeak && suspect.id == subject.id()) return &suspect;
    if (subject.kind != Subject::kStack) continue;
    for (const analysis::LeakStack& stack : suspect.stacks) {
      if (stack.stack == subject.number) return &suspect;
    }
  }
  return nullptr;
}

// ---- The first line

std::string DeviceTitle(const ShowInput& input, const Subject& subject) {
  if (subject.unknown) return "the host";
  std::string title = fmt::format("GPU {}", subject.number);
  for (const analysis::GpuFacts& gpu : input.trace().devices) {
    if (gpu.index != subject.number || gpu.name.empty()) continue;
    title += fmt::format(" ({})", gpu.name);
  }
  return title;
}

std::string OfTotal(const ShowInput& input, const Subject& subject, uint64_t bytes) {
  if (subject.kind != Subject::kDevice || subject.unknown) return "";
  for (const analysis::GpuFacts& gpu : input.trace().devices) {
    if (gpu.index != subject.number || gpu.total_bytes == 0) continue;
    return fmt::format(" of {} ({})", Bytes(gpu.total_bytes),
                       Percent(static_cast<double>(bytes), static_cast<double>(gpu.total_bytes)));
  }
  return "";
}

// Returns where the memory comes from, unless the ID already says so.
std::string Origin(const Subject& subject, const Life& life) {
  switch (subject.kind) {
    case Subject::kCategory:
    case Subject::kLayer:
    case Subject::kThread:
    case Subject::kStream:
    case Subject::kFunction:
    case Subject::kFile:
    case Subject::kLibrary:
      return fmt::format(", from {}", Plural(life.stacks.size(), "stack"));
    default:
      return "";
  }
}

std::string SuspectLine(const LeakSuspect& suspect) {
  std::string kind(NameOf(suspect.kind));
  std::replace(kind.begin(), kind.end(), '_', ' ');
  const std::string_view tier =
      suspect.tier == analysis::LeakTier::kLeak ? "a leak" : NameOf(suspect.tier);
  return fmt::format(
      "{} is {} ({}): {} per step, {} after the last step, from {}", suspect.id,
      suspect.tier == analysis::LeakTier::kLeak ? tier : fmt::format("a {} leak", tier), kind,
      SignedBytes(static_cast<int64_t>(suspect.bytes_per_cycle)), Bytes(suspect.bytes),
      Plural(suspect.stacks.size(), "stack"));
}

// The name comes first. If it is too long, it is shortened and the numbers are kept.
std::string HeadlineOf(const ShowInput& input, const Subject& subject, const Life& life,
                       size_t width) {
  const std::string amounts = fmt::format(
      "{}{} at most, in {} at {}", Bytes(life.peak_bytes), OfTotal(input, subject, life.peak_bytes),
      Plural(life.peak_count, "piece"), Duration(life.peak_t_ns));
  if (subject.kind == Subject::kDevice) {
    return fmt::format("{} held {}", DeviceTitle(input, subject), amounts);
  }
  if (subject.kind != Subject::kStack) {
    return fmt::format("{} held {}{}", subject.id(), amounts, Origin(subject, life));
  }
  const size_t taken = subject.id().size() + amounts.size() + 6;
  const size_t room = width > taken + 20 ? width - taken : 20;
  const std::string name = StackName(input, static_cast<uint32_t>(subject.number), room);
  return fmt::format("{} is {}: {}", subject.id(), Shortened(name, room), amounts);
}

// ---- Facts

std::string AtPeak(const ShowInput& input, const Subject& subject, const Life& life) {
  std::vector<std::string> parts;
  for (const LifeAtPeak& at : life.at_peaks) {
    if (at.device != life.at_peaks.front().device || parts.size() == kValuesShown) continue;
    parts.push_back(
        fmt::format("{} ({}) in {} {}", Bytes(at.bytes),
                    Percent(static_cast<double>(at.bytes), static_cast<double>(at.device_bytes)),
                    Plural(at.count, "piece"), input.trace().heaps[at.heap]));
  }
  if (parts.empty()) return life.peak_bytes == 0 ? "" : "nothing at the peak of any device";
  const LifeAtPeak& first = life.at_peaks.front();
  const std::string moment = fmt::format("{} at {}", PlaceName(first.device), Duration(first.t_ns));
  if (subject.kind == Subject::kDevice)
    return absl::StrJoin(parts, ", ") + " (each byte counted once)";
  return fmt::format("{} held {}, of which {}", moment, Bytes(first.device_bytes),
                     absl::StrJoin(parts, ", "));
}

std::string Calls(const Life& life) {
  std::string text = fmt::format("{} of {} in total, {}", Plural(life.allocations, "allocation"),
                                 Bytes(life.allocated_bytes), Plural(life.frees, "free"));
  if (life.from_before > 0)
    text += fmt::format("; {} from before the recording", Count(life.from_before));
  return text +
         fmt::format("; {} still held at the end, {}", Count(life.held), Bytes(life.held_bytes));
}

std::string Sizes(const analysis::LifeSizes& sizes) {
  if (sizes.distinct == 0) return "";
  if (sizes.distinct == 1)
    return fmt::format("{} each ({} B)", Bytes(sizes.biggest), sizes.biggest);
  const std::string text =
      fmt::format("{} to {}, {}{} sizes", Bytes(sizes.smallest), Bytes(sizes.biggest),
                  sizes.more ? "more than " : "", Count(sizes.distinct));
  if (sizes.most_common_count == 1) return text;
  return text + fmt::format("; most often {} ({} times)", Bytes(sizes.most_common),
                            Count(sizes.most_common_count));
}

std::string LifetimeText(const analysis::Lifetimes& lifetimes) {
  if (lifetimes.count == 0) return "never freed";
  if (lifetimes.count == 1) return Duration(static_cast<int64_t>(lifetimes.longest_ns));
  std::string text = fmt::format("{} median, 90 % within {}, longest {}",
                                 Duration(static_cast<int64_t>(lifetimes.median_ns)),
                                 Duration(static_cast<int64_t>(lifetimes.p90_ns)),
                                 Duration(static_cast<int64_t>(lifetimes.longest_ns)));
  // The others were freed in a later step, or never.
  const auto all = static_cast<double>(lifetimes.count);
  if (lifetimes.same_step == lifetimes.count) return text + "; freed in the step of its allocation";
  if (lifetimes.same_step > 0)
    text += fmt::format("; {} in the same step",
                        Percent(static_cast<double>(lifetimes.same_step), all));
  if (lifetimes.next_step > 0) {
    text += fmt::format("{} {} in the next step", lifetimes.same_step > 0 ? "," : ";",
                        Percent(static_cast<double>(lifetimes.next_step), all));
  }
  return text;
}

// Returns the categories of a device, with each byte counted once.
std::string DeviceCategories(const ShowInput& input, const Subject& subject) {
  const int32_t device =
      subject.unknown ? analysis::kHostDevice : static_cast<int32_t>(subject.number);
  const auto& devices = input.examination.replay().devices();
  const auto found = devices.find(device);
  if (found == devices.end()) return "";
  std::vector<std::string> parts;
  for (const analysis::CategoryUse& use : CategoriesAt(input.examination, input.categories, device,
                                                       found->second.allocated.peak_step)) {
    if (parts.size() == kCategoriesShown) {
      parts.push_back("...");
      break;
    }
    parts.push_back(fmt::format("{} {}", TextOf(use.category), Bytes(use.bytes)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string CategoryText(const Life& life) {
  if (life.categories.empty()) return "";
  const analysis::LifeCategory& first = life.categories.front();
  std::string text = fmt::format("{} (confidence {}): {}", TextOf(first.category),
                                 NameOf(first.confidence), first.reason);
  if (life.categories.size() == 1) return text;
  std::vector<std::string> all;
  for (const analysis::LifeCategory& category : life.categories) {
    if (all.size() == kValuesShown) break;
    all.push_back(fmt::format("{} {}", TextOf(category.category), Bytes(category.bytes)));
  }
  return absl::StrJoin(all, ", ") + fmt::format(": {}", first.reason);
}

// Returns "thread 11" or "streams 0x0 (90 %), 0x7f00 (10 %)".
template <typename Write>
std::string Values(const char* name, const std::vector<LifeValue>& values, const Write& write) {
  if (values.empty()) return "";
  if (values.size() == 1) return fmt::format("{} {}", name, write(values[0].value));
  uint64_t all = 0;
  for (const LifeValue& value : values) all += value.count;
  std::vector<std::string> parts;
  for (const LifeValue& value : values) {
    if (parts.size() == kValuesShown) {
      parts.push_back("...");
      break;
    }
    parts.push_back(
        fmt::format("{} ({})", write(value.value),
                    Percent(static_cast<double>(value.count), static_cast<double>(all))));
  }
  return fmt::format("{}s {}", name, absl::StrJoin(parts, ", "));
}

std::string From(const Life& life) {
  std::vector<std::string> parts;
  for (std::string& part : std::vector<std::string>{
           Values("thread", life.threads, [](uint64_t id) { return fmt::format("{}", id); }),
           Values("stream", life.streams, Address)}) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return absl::StrJoin(parts, "; ");
}

std::string FreedBy(const ShowInput& input, const Life& life, size_t width) {
  if (life.free_stacks.empty()) return "";
  const LifeValue& first = life.free_stacks.front();
  const auto stack = static_cast<uint32_t>(first.value);
  return fmt::format("{} of {} by {}: {}", Count(first.count), Count(life.frees), StackId(stack),
                     StackName(input, stack, width - 40));
}

// Returns the step with the largest peak, and the median number of allocations.
std::string Steps(const ShowInput& input, const Life& life) {
  if (life.cycles.empty()) return "";
  const auto most =
      std::max_element(life.cycles.begin(), life.cycles.end(),
                       [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
  std::vector<uint64_t> births;
  for (const analysis::LifeCycle& cycle : life.cycles) births.push_back(cycle.births);
  return fmt::format("peak in step/{} of {} ({}): {}; median {} per step",
                     most - life.cycles.begin() + 1, life.cycles.size(),
                     input.examination.cycles().source, Bytes(most->peak_bytes),
                     Plural(analysis::UpperMedian(std::move(births)), "allocation"));
}

std::string Eta(const LeakSuspect& suspect) {
  if (!suspect.eta_ns) return "";
  std::string text =
      fmt::format("the device is full {} after the end at this rate", Duration(*suspect.eta_ns));
  if (suspect.low_eta_ns && suspect.high_eta_ns) {
    text +=
        fmt::format(" ({} to {})", Duration(*suspect.low_eta_ns), Duration(*suspect.high_eta_ns));
  }
  return text;
}

void AddParts(const ShowInput& input, const Life& life, ShowPage& page) {
  if (life.parts.size() < 2) return;
  size_t shown = 0;
  for (const LifePart& part : life.parts) {
    if (shown++ == kPartsShown) break;
    page.Fact(fmt::format("{}", input.trace().heaps[part.heap]),
              fmt::format("on {}: peak {}; {}, {}; {} held at the end", PlaceName(part.device),
                          Bytes(part.peak_bytes), Plural(part.allocations, "allocation"),
                          Plural(part.frees, "free"), Bytes(part.held_bytes)));
  }
}

void AddLive(const ShowInput& input, const Life& life, ShowPage& page) {
  if (life.peak_bytes == 0) return;
  page.Fact("live", Sparkline(life.most_bytes, input.utf8) + "|");
  page.Fact("", fmt::format("{} to {}, maximum in each of {} intervals", Duration(life.begin_t_ns),
                            Duration(life.end_t_ns), life.most_bytes.size()));
}

void AddFacts(const ShowInput& input, const Subject& subject, const Life& life,
              const LeakSuspect* suspect, ShowPage& page) {
  if (suspect != nullptr && subject.kind == Subject::kLeak) {
    page.Fact("because", suspect->reason);
    page.Fact("outlook", Eta(*suspect));
  }
  page.Fact("at peak", AtPeak(input, subject, life));
  AddParts(input, life, page);
  if (subject.kind == Subject::kDevice) {
    page.Fact("used for", DeviceCategories(input, subject));
  } else {
    page.Fact(subject.kind == Subject::kCategory ? "because" : "category", CategoryText(life));
  }
  page.Fact("alive as", AliveText(life.alive));
  page.Fact("calls", Calls(life));
  if (subject.kind != Subject::kSize) page.Fact("sizes", Sizes(life.sizes));
  page.Fact("lifetime", LifetimeText(life.lifetimes));
  page.Fact("steps", Steps(input, life));
  page.Fact("from", From(life));
  page.Fact("freed", FreedBy(input, life, page.width()));
  if (suspect != nullptr && subject.kind == Subject::kStack) {
    page.Fact("leak", fmt::format("part of {}", SuspectLine(*suspect)));
  }
  AddLive(input, life, page);
}

// ---- Stacks

void AddFrames(const ShowInput& input, const std::string& heading, uint32_t stack, ShowPage& page) {
  page.Part(heading);
  for (const std::string& line : FramesWithSource(input.examination.stacks().Frames(stack),
                                                  input.shown, input.sources, page.width())) {
    page.Line(line);
  }
}

// Adds the parts of the forward pass that a stack of the backward pass worked on.
void AddForward(const ShowInput& input, const Subject& subject, const Life& life, ShowPage& page) {
  if (subject.forward != 0) {
    AddFrames(input, "Stack of the forward pass", static_cast<uint32_t>(subject.forward), page);
    return;
  }
  if (life.forward_stacks.empty()) return;
  page.Part("Backward of");
  for (size_t i = 0; i < std::min(life.forward_stacks.size(), kValuesShown); ++i) {
    const auto forward = static_cast<uint32_t>(life.forward_stacks[i].value);
    page.Line(fmt::format("  {:>8}  {}   stack/{}+{}", Count(life.forward_stacks[i].count),
                          StackName(input, forward, page.width() - 40), subject.number, forward));
  }
}

void AddStacks(const ShowInput& input, const std::vector<LifeValue>& stacks, ShowPage& page) {
  if (stacks.empty()) return;
  page.Part(fmt::format("Held at its peak, by stack ({} of {})", std::min(stacks.size(), input.top),
                        stacks.size()));
  for (size_t i = 0; i < std::min(stacks.size(), input.top); ++i) {
    const LifeValue& value = stacks[i];
    const auto stack = static_cast<uint32_t>(value.value);
    const std::string id = stack == 0 ? "" : "   " + StackId(stack);
    page.Line(fmt::format("  {:>9} {:>8}  {}{}", Bytes(value.bytes), Count(value.count),
                          Shortened(StackName(input, stack, page.width() - 22 - id.size()),
                                    page.width() - 22 - id.size()),
                          id));
  }
}

// The stacks of a device cover its blocks and the rest of its segments.
const std::vector<LifeValue>& StacksOf(const Subject& subject, const Life& life) {
  return subject.kind == Subject::kDevice ? life.device_stacks : life.stacks;
}

void AddCommonFrame(const ShowInput& input, const LeakSuspect& suspect, ShowPage& page) {
  if (!suspect.common_frame) return;
  page.Part("All of it was allocated through");
  for (const std::string& line :
       FramesWithSource({*suspect.common_frame}, input.shown, input.sources, page.width())) {
    page.Line(line);
  }
}

// ---- What to run next

void AddNext(const Subject& subject, const Life& life, const LeakSuspect* suspect, ShowPage& page) {
  if (subject.kind == Subject::kStack) {
    if (suspect != nullptr) page.Next("show", suspect->id);
  } else if (const auto& stacks = StacksOf(subject, life);
             !stacks.empty() && stacks.front().value != 0) {
    page.Next("show", StackId(static_cast<uint32_t>(stacks.front().value)));
  }
  if (subject.kind == Subject::kLeak) return page.Next("leaks", "");
  if (!life.cycles.empty()) {
    const auto most =
        std::max_element(life.cycles.begin(), life.cycles.end(),
                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    if (most->peak_bytes > 0) {
      return page.Next("report", fmt::format("--at step:{}", most - life.cycles.begin() + 1));
    }
  }
  if (life.peak_bytes > 0) page.Next("report", fmt::format("--at event:{}", life.peak_step));
}

// A stack without recorded memory may appear in an answer: its allocation failed, or it began a
// range.
bool IsKnownStack(const ShowInput& input, const Subject& subject) {
  return subject.kind == Subject::kStack && subject.number <= UINT32_MAX &&
         !input.examination.stacks().Frames(static_cast<uint32_t>(subject.number)).empty();
}

std::string WithoutMemory(const ShowInput& input, const Subject& subject) {
  uint64_t failed = 0, bytes = 0;
  for (const analysis::FailedAllocation& failure : input.trace().failed) {
    if (failure.stack != subject.number && failure.forward_stack != subject.number) continue;
    ++failed;
    bytes = failure.size;
  }
  if (failed > 0) {
    return fmt::format("{} failed to allocate {}, the last time {}", subject.id(),
                       Plural(failed, "time"), Bytes(bytes));
  }
  return fmt::format("{} has no recorded allocation", subject.id());
}

Json SuspectJson(const LeakSuspect* suspect) {
  if (suspect == nullptr) return nullptr;
  return {{"id", suspect->id},
          {"tier", NameOf(suspect->tier)},
          {"kind", NameOf(suspect->kind)},
          {"bytes", suspect->bytes},
          {"bytes_per_cycle", static_cast<int64_t>(suspect->bytes_per_cycle)},
          {"reason", suspect->reason}};
}

bool IsKnownDevice(const ShowInput& input, const Subject& subject) {
  return subject.kind == Subject::kDevice && !subject.unknown &&
         std::any_of(input.trace().devices.begin(), input.trace().devices.end(),
                     [&](const analysis::GpuFacts& gpu) { return gpu.index == subject.number; });
}

Json WithoutLife(const Subject& subject, const std::string& what, Json frames) {
  return {
      {"id", subject.id()},        {"kind", NameOf(subject.kind)}, {"what", what},
      {"life", nullptr},           {"suspect", nullptr},           {"frames", std::move(frames)},
      {"forward_frames", nullptr}, {"stacks", Json::array()}};
}

ShowAnswer StackWithoutMemory(const ShowInput& input, const Subject& subject) {
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  const auto stack = static_cast<uint32_t>(subject.number);
  const std::string what =
      fmt::format("{}: {}", WithoutMemory(input, subject), StackName(input, stack, 60));
  answer.page.Headline(what);
  AddFrames(input, "Stack", stack, answer.page);
  answer.page.Next("report", "--by stack");
  answer.json = WithoutLife(subject, what, FramesJson(input.examination.stacks().Frames(stack)));
  return answer;
}

ShowAnswer DeviceWithoutMemory(const ShowInput& input, const Subject& subject) {
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  const std::string what =
      fmt::format("{}: no memory was allocated on it", DeviceTitle(input, subject));
  answer.page.Headline(what);
  answer.page.Next("info", "");
  answer.json = WithoutLife(subject, what, Json::array());
  return answer;
}

}  // namespace

ShowResult ShowMemory(const ShowInput& input, const Subject& subject) {
  const analysis::Selection selection =
      Select(input.examination, input.categories, input.leaks, subject);
  if (selection.count() == 0) {
    if (IsKnownStack(input, subject)) return StackWithoutMemory(input, subject);
    if (IsKnownDevice(input, subject)) return DeviceWithoutMemory(input, subject);
    return NoSuch(input, subject);
  }
  const size_t columns =
      std::min(kSparkColumns, static_cast<size_t>(std::max(input.terminal.width, 40)) - 13);
  const Life life = LifeOf(input.examination, input.categories, selection, columns);
  const LeakSuspect* suspect = SuspectOf(input, subject);
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  ShowPage& page = answer.page;
  const std::string headline = subject.kind == Subject::kLeak && suspect != nullptr
                                   ? SuspectLine(*suspect)
                                   : HeadlineOf(input, subject, life, page.width());
  page.Headline(headline);
  AddFacts(input, subject, life, suspect, page);
  const bool is_stack = subject.kind == Subject::kStack;
  const auto stack = static_cast<uint32_t>(is_stack ? subject.number : 0);
  if (is_stack) {
    AddFrames(input, "Stack", stack, page);
    AddForward(input, subject, life, page);
  } else {
    if (suspect != nullptr) AddCommonFrame(input, *suspect, page);
    AddStacks(input, StacksOf(subject, life), page);
  }
  AddSavers(life.alive, page);
  AddNext(subject, life, suspect, page);
  answer.json = {
      {"id", subject.id()},
      {"kind", NameOf(subject.kind)},
      {"what", headline},
      {"life", LifeJson(input.examination, life)},
      {"suspect", SuspectJson(suspect)},
      {"frames", FramesJson(input.examination.stacks().Frames(stack))},
      {"forward_frames", subject.forward == 0 ? Json(nullptr)
                                              : FramesJson(input.examination.stacks().Frames(
                                                    static_cast<uint32_t>(subject.forward)))},
      {"stacks", StacksJson(input.examination, StacksOf(subject, life), input.top)}};
  return answer;
}

}  // namespace gmt::answers
