#include "cli/top/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"
#include "analysis/text.h"
#include "answers/stacks/stack_text.h"
#include "format/printable.h"
#include "symbols/frame_rules.h"

namespace gmt::cli {
namespace {

using Style = TopLine::Style;
using analysis::FrameText;

constexpr int kHeapColumns = 67;  // of a heap's line, before the sparkline
constexpr int kMaxSparkColumns = 60;
constexpr double kSecondsOfRate = 60;

const char* OrderName(control::TopOrder order) {
  switch (order) {
    case control::BY_GROWTH:
      return "growth";
    case control::BY_RATE:
      return "rate";
    default:
      return "live";
  }
}

std::string Rate(double per_second) {
  if (per_second < 0.05) return "0";
  if (per_second < 10) return fmt::format("{:.1f}", per_second);
  if (per_second < 100000) return Count(static_cast<uint64_t>(std::llround(per_second)));
  return fmt::format("{:.0f} k", per_second / 1000);
}

std::string Growth(double bytes_per_second) {
  return SignedBytes(std::llround(bytes_per_second * kSecondsOfRate));
}

// Returns the command without the directory: "python train.py".
std::string Program(const std::string& command) {
  const size_t slash = command.rfind('/', command.find(' '));
  return slash == std::string::npos ? command : command.substr(slash + 1);
}

class Drawing {
 public:
  Drawing(const TopModel& model, const TopChoice& choice, const TopSize& size)
      : model_(model), choice_(choice), size_(size) {}

  std::vector<TopLine> Draw() {
    DrawHead();
    if (choice_.help) {
      DrawHelp();
    } else if (model_.processes().empty()) {
      Add("");
      Add("No process is being recorded. Start one: gpumemtrace run -- COMMAND, or attach to one: "
          "gpumemtrace attach PID");
    } else {
      DrawProcesses();
      DrawDevices();
      DrawSites();
    }
    if (size_.rows > 0) {
      lines_.resize(static_cast<size_t>(size_.rows - 1));
      DrawFoot();
    }
    return std::move(lines_);
  }

 private:
  void Add(const std::string& text, Style style = Style::kPlain) {
    lines_.push_back(
        {Shortened(format::Printable(text), static_cast<size_t>(size_.columns)), style});
  }
  size_t Room() const {
    if (size_.rows == 0) return SIZE_MAX;
    const size_t used = lines_.size() + 1;  // including the foot
    return used >= static_cast<size_t>(size_.rows) ? 0 : static_cast<size_t>(size_.rows) - used;
  }
  size_t SparkColumns() const {
    return static_cast<size_t>(std::clamp(size_.columns - kHeapColumns, 4, kMaxSparkColumns));
  }
  const TopProcess& Chosen() const { return *model_.FindOrFirst(choice_.pid); }

  void DrawHead() {
    uint64_t live = 0;
    for (const TopProcess& process : model_.processes()) live += LiveOf(process);
    const size_t processes = model_.processes().size();
    std::string text = fmt::format("gpumemtrace top: {} in {} process{}", Bytes(live), processes,
                                   processes == 1 ? "" : "es");
    absl::StrAppend(&text, "   by ", OrderName(choice_.order));
    if (!choice_.filter.empty()) absl::StrAppend(&text, "   with \"", choice_.filter, "\"");
    if (choice_.frozen) absl::StrAppend(&text, "   FROZEN");
    Add(text, Style::kTitle);
  }

  // A block and the segment that contains it are the same memory, so each device counts the larger
  // sum of the two.
  static uint64_t LiveOf(const TopProcess& process) {
    std::map<int32_t, uint64_t> driver, blocks;
    for (const control::HeapStatus& heap : process.last.status().heaps()) {
      const TopHeapKey key = KeyOf(heap);
      (key.heap == "driver" || key.heap == "host" ? driver : blocks)[key.device] +=
          heap.live_bytes();
    }
    uint64_t live = 0;
    for (const auto& [device, bytes] : driver) live += std::max(bytes, blocks[device]);
    for (const auto& [device, bytes] : blocks) live += driver.contains(device) ? 0 : bytes;
    return live;
  }

  void DrawProcesses() {
    Add(fmt::format("{:>8}  {:<5} {:<7} {:>9} {:>9} {:>9} {:>11}  {}", "PID", "GPU", "HEAP", "LIVE",
                    "RESERVED", "PEAK", "GROWTH/min", "LAST MINUTE"),
        Style::kBold);
    // On a small terminal, half of the lines are reserved for stacks.
    const size_t most = size_.rows == 0 ? SIZE_MAX : static_cast<size_t>(size_.rows) / 2;
    for (const TopProcess& process : model_.processes()) {
      DrawHeaps(process, most);
      if (!process.trouble.empty())
        Add(fmt::format("{:>8}  {}", process.pid, process.trouble), Style::kWarning);
    }
  }

  void DrawHeaps(const TopProcess& process, size_t most) {
    bool is_first = true;
    for (const control::HeapStatus& heap : process.last.status().heaps()) {
      if (heap.live_bytes() == 0 && heap.peak_bytes() == 0) continue;
      if (lines_.size() >= most) return;
      const TopHeapKey key = KeyOf(heap);
      const auto samples = process.live.find(key);
      Add(fmt::format("{:>8}  {:<5} {:<7} {:>9} {:>9} {:>9} {:>11}  {}",
                      is_first ? std::to_string(process.pid) : "",
                      key.device < 0 ? "host" : std::to_string(key.device), key.heap,
                      Bytes(heap.live_bytes()),
                      heap.has_reserved_bytes() ? Bytes(heap.reserved_bytes()) : "-",
                      Bytes(heap.peak_bytes()), Growth(heap.growth_bytes_per_second()),
                      samples == process.live.end()
                          ? ""
                          : Sparkline(samples->second, SparkColumns(), size_.utf8)),
          &process == &Chosen() ? Style::kPlain : Style::kDim);
      is_first = false;
    }
    if (is_first && process.trouble.empty())
      Add(fmt::format("{:>8}  {}", process.pid, "no GPU memory yet"), Style::kDim);
  }

  void DrawDevices() {
    for (const control::DeviceStatus& device : Chosen().last.status().devices()) {
      if (!device.has_used_bytes() || !device.has_total_bytes() || device.total_bytes() == 0)
        continue;
      if (Room() < 4) return;
      const double used = static_cast<double>(device.used_bytes());
      const double total = static_cast<double>(device.total_bytes());
      constexpr int kBar = 10;
      const int filled = std::clamp(static_cast<int>(std::lround(used / total * kBar)), 0, kBar);
      Add(fmt::format("GPU {} {}  {} of {} used by all ({})  [{}{}]", device.index(), device.name(),
                      Bytes(device.used_bytes()), Bytes(device.total_bytes()), Percent(used, total),
                      std::string(static_cast<size_t>(filled), '#'),
                      std::string(static_cast<size_t>(kBar - filled), '.')),
          used / total > 0.95 ? Style::kWarning : Style::kPlain);
    }
  }

  void DrawSites() {
    const TopProcess& process = Chosen();
    const std::vector<int> shown = SitesShown(process, choice_.filter);
    if (Room() < 2) return;
    Add(fmt::format("{:>10} {:>8} {:>12} {:>9}  {}", "LIVE", "COUNT", "GROWTH/min", "ALLOC/s",
                    fmt::format("STACK of {} {}", process.pid, Program(process.command))),
        Style::kBold);
    if (shown.empty()) {
      Add(choice_.filter.empty() ? "           no stack holds memory"
                                 : "           no stack has that text; Escape shows all",
          Style::kDim);
      return;
    }
    const size_t chosen = std::min(choice_.row, shown.size() - 1);
    if (choice_.whole_stack) {
      DrawSite(process.last.sites(shown[chosen]), Style::kChosen);
      DrawStack(process.last.sites(shown[chosen]));
      return;
    }
    const size_t room = std::min(Room(), shown.size());
    const size_t first = chosen < room ? 0 : chosen - room + 1;
    for (size_t i = first; i < std::min(first + room, shown.size()); ++i) {
      const bool is_chosen = i == chosen && size_.rows > 0;
      DrawSite(process.last.sites(shown[i]), is_chosen ? Style::kChosen : Style::kPlain);
    }
  }

  static std::vector<FrameText> FramesOf(const control::Site& site) {
    std::vector<FrameText> frames;
    for (const control::Frame& frame : site.frames()) {
      FrameText text;
      text.function = frame.function();
      text.file = frame.file();
      text.line = frame.line();
      text.language = frame.python() ? "python" : "c++";
      text.module = frame.module();
      text.role = symbols::FrameRules::BuiltIn().RoleOf(
          {text.function, text.file, text.module, text.language});
      frames.push_back(std::move(text));
    }
    return analysis::WithoutNoise(std::move(frames));
  }

  void DrawSite(const control::Site& site, Style style) {
    const double seconds = static_cast<double>(site.growth_ns()) / 1e9;
    const double growth = seconds > 0 ? static_cast<double>(site.growth_bytes()) / seconds : 0;
    const std::string numbers =
        fmt::format("{:>10} {:>8} {:>12} {:>9}  ", Bytes(site.live_bytes()),
                    Count(site.live_count()), Growth(growth), Rate(site.allocations_per_second()));
    const size_t width = static_cast<size_t>(std::max(size_.columns, 50)) - numbers.size();
    Add(numbers + (site.other() ? "all other stacks" : answers::StackLine(FramesOf(site), width)),
        style);
  }

  void DrawStack(const control::Site& site) {
    for (const FrameText& frame : FramesOf(site)) {
      if (Room() == 0) return;
      Add("    " + answers::FrameLine(frame, static_cast<size_t>(std::max(size_.columns - 4, 20))));
    }
  }

  void DrawHelp() {
    Add("");
    for (const TopHelpLine& line : TopHelp())
      Add(fmt::format("  {:<14}  {}", line.keys, line.what));
  }

  void DrawFoot() {
    if (choice_.typing == TopChoice::Typing::kFilter) {
      Add(absl::StrCat("only stacks with: ", choice_.typed, "_"), Style::kBold);
    } else if (choice_.typing == TopChoice::Typing::kMark) {
      Add(absl::StrCat("name of the mark: ", choice_.typed, "_"), Style::kBold);
    } else if (!choice_.message.empty()) {
      Add(choice_.message, Style::kBold);
    } else if (const std::string lacks = Lacks(); !lacks.empty()) {
      Add(lacks, Style::kWarning);
    } else {
      Add("q quit  s order  / filter  f freeze  Enter frames  Tab process  p m  ? help",
          Style::kDim);
    }
  }

  std::string Lacks() const {
    if (model_.processes().empty()) return "";
    const control::Status& status = Chosen().last.status();
    if (status.stalled())
      return absl::StrCat("the recording cannot be written: ", status.stall_reason());
    if (!status.inexact_because().empty())
      return absl::StrCat("live memory is not exact: ", status.inexact_because());
    return "";
  }

  const TopModel& model_;
  const TopChoice& choice_;
  const TopSize size_;
  std::vector<TopLine> lines_;
};

}  // namespace

std::vector<TopLine> DrawTop(const TopModel& model, const TopChoice& choice, const TopSize& size) {
  return Drawing(model, choice, size).Draw();
}

std::vector<int> SitesShown(const TopProcess& process, const std::string& filter) {
  const std::string wanted = absl::AsciiStrToLower(filter);
  std::vector<int> shown;
  for (int i = 0; i < process.last.sites_size(); ++i) {
    const control::Site& site = process.last.sites(i);
    bool fits = wanted.empty();
    for (const control::Frame& frame : site.frames()) {
      if (fits) break;
      const std::string text = absl::StrCat(frame.function(), " ", frame.file(), ":", frame.line());
      fits = absl::AsciiStrToLower(text).find(wanted) != std::string::npos;
    }
    if (fits) shown.push_back(i);
  }
  return shown;
}

std::string Sparkline(const std::deque<uint64_t>& samples, size_t columns, bool utf8) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kPlain[] = {"_", "_", ".", ".", "-", "-", "=", "#"};
  if (samples.empty()) return "";
  const size_t first = samples.size() > columns ? samples.size() - columns : 0;
  const auto [least, most] =
      std::minmax_element(samples.begin() + static_cast<long>(first), samples.end());
  std::string text;
  for (size_t i = first; i < samples.size(); ++i) {
    const double range = static_cast<double>(*most - *least);
    const double share = range == 0 ? 0 : static_cast<double>(samples[i] - *least) / range;
    const auto level = static_cast<size_t>(std::lround(share * 7));
    text += utf8 ? kBars[level] : kPlain[level];
  }
  return text;
}

}  // namespace gmt::cli
