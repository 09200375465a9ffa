#include "answers/leaks/leaks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/leaks/trend.h"
#include "analysis/text.h"
#include "answers/stacks/stack_text.h"
#include "symbols/demangle.h"

namespace gmt::answers {
namespace {

using analysis::BenignGrowth;
using analysis::CycleMinima;
using analysis::LeakKind;
using analysis::LeakReport;
using analysis::LeakSuspect;
using analysis::LeakTier;
using analysis::Whole;

constexpr size_t kBenignShown = 3, kLacksShown = 2, kMinimaShown = 2, kGrowingShown = 3;
constexpr int kLeastWidth = 60;
constexpr std::string_view kIndent = "        ";

std::string Rate(double bytes) { return Bytes(Whole(bytes)); }

std::string Where(int32_t device) {
  return device == analysis::kHostDevice ? "the host" : fmt::format("GPU {}", device);
}

std::string_view KindText(LeakKind kind) {
  switch (kind) {
    case LeakKind::kGraphKept:
      return "autograd graph kept";
    case LeakKind::kTensorKept:
      return "tensors kept";
    case LeakKind::kOptimizerGrows:
      return "growing state of an optimizer";
    case LeakKind::kCatGrowth:
      return "one growing tensor";
    case LeakKind::kDriver:
      return "driver memory not freed";
    case LeakKind::kPinnedHost:
      return "pinned memory not freed";
    case LeakKind::kPoolRatchet:
      return "pool that keeps segments it has outgrown";
    case LeakKind::kAwaiting:
      return "freed, but waiting for a stream forever";
    case LeakKind::kUntracked:
      return "untracked";
  }
  return "";
}

std::string_view Fix(LeakKind kind) {
  switch (kind) {
    case LeakKind::kGraphKept:
      return "keep loss.item() or x.detach(): a tensor with a graph keeps all activations";
    case LeakKind::kTensorKept:
      return "find what keeps it (a list, a dict, a closure); drop it, or keep x.cpu()";
    case LeakKind::kOptimizerGrows:
      return "create the optimizer once; no add_param_group or new parameters in the loop";
    case LeakKind::kCatGrowth:
      return "write into a preallocated tensor, or bound its length";
    case LeakKind::kDriver:
      return "free what you allocate: one cudaFree or destroy for each call";
    case LeakKind::kPinnedHost:
      return "allocate pinned buffers once and reuse them";
    case LeakKind::kPoolRatchet:
      return "round sizes up to a few values, so that free memory can be reused";
    case LeakKind::kAwaiting:
      return "let that stream finish: wait for it, or stop recording blocks on it";
    case LeakKind::kUntracked:
      return "look for modules, streams, events, graphs or handles created in the loop, not "
             "destroyed";
  }
  return "";
}

std::string OptionText(const std::string& option) {
  return fmt::format("set {} in TrainingArguments: it moves predictions to host memory", option);
}

const analysis::Alive::Savers* SaversOf(const LeakSuspect& suspect) {
  return suspect.alive.savers.empty() ? nullptr : &suspect.alive.savers.front();
}

class Writer {
 public:
  Writer(const LeakReport& report, const LeaksShown& shown, analysis::SourceLines& sources,
         const Terminal& terminal)
      : report_(report),
        shown_(shown),
        sources_(sources),
        terminal_(terminal),
        width_(static_cast<size_t>(std::max(terminal.width, kLeastWidth))) {}

  std::string Write() && {
    text_ = terminal_.Bold(Cut(Verdict())) + "\n";
    if (report_.cycles.count > 0) Line(Watched());
    if (report_.details_from_ns) Line(Details());
    for (const CycleMinima& minima : MinimaShown()) Line(MinimaText(minima));
    const size_t count = std::min(shown_.top, report_.suspects.size());
    for (size_t i = 0; i < count; ++i) Suspect(report_.suspects[i]);
    if (count < report_.suspects.size())
      Line(fmt::format("and {} more: --top {}", report_.suspects.size() - count,
                       report_.suspects.size()));
    Growing();
    Benign();
    Lacks();
    Line(Next());
    return std::move(text_);
  }

 private:
  std::string_view Unit() const {
    return report_.cycles.clear || report_.cycles.count == 0 ? "step" : "part";
  }
  std::string Cycles(uint64_t count) const { return Plural(count, std::string(Unit()).c_str()); }
  std::string Cut(const std::string& line) const { return Shortened(line, width_); }
  void Line(const std::string& line) { text_ += Cut(line) + "\n"; }

  std::string PlaceOf(const analysis::FrameText& frame) const {
    return frame.Place().empty() ? symbols::ShortName(frame.Name(), width_ / 3) : frame.Place();
  }
  std::string Place(const LeakSuspect& suspect) const {
    if (suspect.common_frame) return "at " + PlaceOf(*suspect.common_frame);
    return suspect.kind == LeakKind::kUntracked ? "that no allocation explains" : "without a stack";
  }

  std::string Verdict() const {
    if (!shown_.has_history)
      return "No history: the file shows one moment; a leak shows only over many steps.";
    if (report_.cycles.count == 0)
      return "Too early to tell: the recording has no allocations that could be compared over "
             "time.";
    if (!report_.enough) {
      return fmt::format("Too early to tell: {} of at least {} {}s were recorded.",
                         Count(report_.cycles.count), report_.cycles_needed, Unit());
    }
    if (report_.suspects.empty()) return NoLeak();
    const LeakSuspect& first = report_.suspects.front();
    const std::string_view word = first.tier == LeakTier::kLeak     ? "Leak"
                                  : first.tier == LeakTier::kLikely ? "Likely a leak"
                                                                    : "Possibly a leak";
    std::string line =
        fmt::format("{}: {} per {} on {} {}, {} so far", word, Rate(first.bytes_per_cycle), Unit(),
                    Where(first.device), Place(first), Bytes(first.bytes));
    const auto more = std::count_if(report_.suspects.begin() + 1, report_.suspects.end(),
                                    [](const auto& s) { return s.tier != LeakTier::kPossible; });
    if (more > 0 && first.tier != LeakTier::kPossible) line += fmt::format("; {} more", more);
    return line + ".";
  }

  // Whether the first and the last minimum differ by at most 5 %. Those of a program that frees in
  // long intervals may differ by more.
  static bool IsLevel(const CycleMinima& minima) {
    const auto [least, most] = std::minmax(minima.first_bytes, minima.last_bytes);
    return most - least <= most / 20;
  }

  std::string NoLeak() const {
    const CycleMinima* most = nullptr;
    for (const CycleMinima& minima : report_.minima) {
      if (most == nullptr || minima.last_bytes > most->last_bytes) most = &minima;
    }
    if (most == nullptr) return "No leak: nothing was held between steps.";
    for (const BenignGrowth& growth : report_.benign) {
      if (growth.bytes_per_cycle <= 0) continue;
      return fmt::format("No leak: {} grows by {} per {}, {} so far.", growth.label,
                         Rate(growth.bytes_per_cycle), Unit(), Bytes(growth.bytes));
    }
    if (const CycleMinima* rising = Rising()) {
      return fmt::format(
          "Not sure: the minimum of {} rises by {} per {}, and no stack explains it; record "
          "longer.",
          Where(rising->device), Rate(rising->bytes_per_cycle), Unit());
    }
    if (IsLevel(*most)) {
      return fmt::format(
          "No leak: the minimum of {} stays at {} over {}, and no stack keeps growing.",
          Where(most->device), Bytes(most->last_bytes), Cycles(report_.cycles.count));
    }
    return fmt::format("No leak: neither the minimum of {} nor a stack keeps growing over {}.",
                       Where(most->device), Cycles(report_.cycles.count));
  }

  // Returns for how many more cycles the device has room, if all that grows together goes on.
  std::string RoomFor(const BenignGrowth& growth) const {
    if (!growth.room || growth.bytes_per_cycle <= 0) return "";
    double bytes_per_cycle = 0;
    for (const BenignGrowth& other : report_.benign) {
      if (other.room == growth.room) bytes_per_cycle += other.bytes_per_cycle;
    }
    const double cycles = static_cast<double>(*growth.room) / bytes_per_cycle;
    return fmt::format(", room for {}",
                       Plural(analysis::Whole(cycles), fmt::format("more {}", Unit()).c_str()));
  }

  // Returns what rises most after all explained growth is subtracted, or nullptr if nothing does.
  const CycleMinima* Rising() const {
    const CycleMinima* rising = nullptr;
    for (const CycleMinima& minima : report_.minima) {
      if (!Grows(minima)) continue;
      if (rising == nullptr || minima.bytes_per_cycle > rising->bytes_per_cycle) rising = &minima;
    }
    return rising;
  }
  static bool Grows(const CycleMinima& minima) { return minima.low_bytes_per_cycle > 0; }

  std::string Watched() const {
    const auto& cycles = report_.cycles;
    if (!cycles.clear) {
      return fmt::format(
          "no steps were found in {}: comparing {} {}s of equally many events; a "
          "mark \"step\" would help",
          Duration(report_.watched_ns), Count(cycles.count), Unit());
    }
    const char* by = cycles.inferred ? "inferred from" : "by";
    if (report_.watched_ns == 0) {
      return fmt::format("{}, {} {}; the recording has no times", Cycles(cycles.count), by,
                         cycles.source);
    }
    return fmt::format("{} in {}, {} {}, {} each", Cycles(cycles.count),
                       Duration(report_.watched_ns), by, cycles.source, Duration(cycles.period_ns));
  }

  std::string Details() const {
    return fmt::format("over the whole time; events are kept from {} on",
                       Duration(*report_.details_from_ns));
  }

  // Returns " (9.8 MiB - 10.2 MiB)", or "" if both texts are equal.
  static std::string Interval(const std::string& low, const std::string& high) {
    return low == high ? "" : fmt::format(" ({} - {})", low, high);
  }

  // Returns the growing ones first, then those that hold most.
  std::vector<CycleMinima> MinimaShown() const {
    std::vector<CycleMinima> shown;
    for (const CycleMinima& minima : report_.minima) {
      if (Grows(minima) || (report_.enough && minima.device != analysis::kHostDevice))
        shown.push_back(minima);
    }
    std::stable_sort(shown.begin(), shown.end(), [](const CycleMinima& a, const CycleMinima& b) {
      return std::pair(Grows(a), a.last_bytes) > std::pair(Grows(b), b.last_bytes);
    });
    if (shown.size() > kMinimaShown) shown.resize(kMinimaShown);
    return shown;
  }

  std::string MinimaText(const CycleMinima& minima) const {
    std::string line = fmt::format("minimum of {}: {} at {} {}, {} at the end",
                                   Where(minima.device), Bytes(minima.first_bytes), Unit(),
                                   Count(minima.first_cycle), Bytes(minima.last_bytes));
    if (!Grows(minima)) return line + "; it does not grow";
    return line + fmt::format("; {}+{} per {}{}", report_.enough ? "" : "perhaps ",
                              Rate(minima.bytes_per_cycle), Unit(),
                              Interval(Rate(minima.low_bytes_per_cycle),
                                       Rate(minima.high_bytes_per_cycle)));
  }

  void Suspect(const LeakSuspect& suspect) {
    std::string head =
        fmt::format("{}  {:<8} {} per {}{}, {}", suspect.id, NameOf(suspect.tier),
                    Rate(suspect.bytes_per_cycle), Unit(),
                    Interval(Rate(suspect.low_bytes_per_cycle), Rate(suspect.high_bytes_per_cycle)),
                    Bytes(suspect.bytes));
    if (suspect.count > 0) head += " in " + Plural(suspect.count, "block");
    if (suspect.since_cycle > 1)
      head += fmt::format(", since {} {}", Unit(), Count(suspect.since_cycle));
    Line(head);
    Indented(fmt::format("{}; {}", WhatIsKept(suspect), suspect.reason));
    if (suspect.common_frame) {
      std::string line = FrameLine(*suspect.common_frame, width_ / 2);
      const std::string source = sources_.Line(*suspect.common_frame);
      if (!source.empty()) line += "   " + source;
      Indented(line);
    }
    if (!suspect.layer.empty())
      Indented("in " + LayerText(suspect.layer, width_ - kIndent.size() - 3));
    const analysis::Alive::Savers* savers = SaversOf(suspect);
    const std::string at = suspect.common_frame ? suspect.common_frame->Place() : "";
    if (savers != nullptr && savers->own && savers->own->Place() != at)
      Indented(fmt::format("saved in {}", FrameLine(*savers->own, width_ / 2)));
    if (!suspect.lock_step_with.empty()) {
      Indented(fmt::format("kept at the same steps as {}: perhaps for the same reason",
                           suspect.lock_step_with));
    } else if (const std::string fix = FixOf(suspect); !fix.empty()) {
      Indented("fix: " + fix);
    }
    if (suspect.eta_ns) Indented(Outlook(suspect));
    if (suspect.before.blocks > 0) {
      Indented(fmt::format("another {} in {} of the same sizes {} there before attach",
                           Bytes(suspect.before.bytes), Plural(suspect.before.blocks, "block"),
                           suspect.before.blocks == 1 ? "was" : "were"));
    }
  }
  void Indented(const std::string& line) { Line(std::string(kIndent) + line); }

  static std::string Outlook(const LeakSuspect& suspect) {
    std::string line = fmt::format("{} is full in about {} at this rate", Where(suspect.device),
                                   Duration(*suspect.eta_ns));
    if (suspect.low_eta_ns && suspect.high_eta_ns)
      line += Interval(Duration(*suspect.low_eta_ns), Duration(*suspect.high_eta_ns));
    return line;
  }

  void Growing() {
    const size_t count = std::min(kGrowingShown, report_.growing.size());
    if (count > 0)
      Line("growing so far, as a leak does, and as a cache or queue does until it is full:");
    for (size_t i = 0; i < count; ++i) {
      const LeakSuspect& growing = report_.growing[i];
      std::string line =
          fmt::format("{} per {}, {} in {}, {}", Rate(growing.bytes_per_cycle), Unit(),
                      Bytes(growing.bytes), Plural(growing.count, "block"), Place(growing));
      const std::string source =
          growing.common_frame ? sources_.Line(*growing.common_frame) : std::string();
      if (!source.empty()) line += "   " + source;
      Indented(line);
    }
    if (count < report_.growing.size())
      Indented(fmt::format("and {} more", report_.growing.size() - count));
  }

  void Benign() {
    const size_t count = std::min(kBenignShown, report_.benign.size());
    for (size_t i = 0; i < count; ++i) {
      const BenignGrowth& growth = report_.benign[i];
      std::string line = fmt::format("{} {}: {}{}", i == 0 ? "benign:" : "       ", growth.label,
                                     Bytes(growth.bytes), RoomFor(growth));
      if (growth.frame) line += ", " + PlaceOf(*growth.frame);
      if (i + 1 == count && count < report_.benign.size())
        line += fmt::format("; and {} more", report_.benign.size() - count);
      Line(line);
    }
  }

  void Lacks() {
    if (!shown_.has_history) return;
    size_t count = 0;
    for (const std::string& lack : shown_.lacks) {
      // Unnamed frames do not affect this answer.
      if (lack.find("without a name") != std::string::npos || count == kLacksShown) continue;
      Line("Not known: " + lack);
      ++count;
    }
  }

  std::string Next() const {
    if (!shown_.has_history)
      return fmt::format("Next: gpumemtrace diff {} LATER_FILE", shown_.file);
    if (!report_.suspects.empty())
      return fmt::format("Next: gpumemtrace show {} {}", shown_.file, report_.suspects.front().id);
    if (!report_.enough)
      return fmt::format("Next: record at least {} {}s, {} are better: gpumemtrace run -- COMMAND",
                         report_.cycles_needed, Unit(), analysis::kCyclesForLeak);
    if (Rising() != nullptr)
      return fmt::format("Next: record at least {} {}s: gpumemtrace run -- COMMAND",
                         Count(2 * report_.cycles.count), Unit());
    return fmt::format("Next: gpumemtrace report {}", shown_.file);
  }

  const LeakReport& report_;
  const LeaksShown& shown_;
  analysis::SourceLines& sources_;
  const Terminal& terminal_;
  const size_t width_;
  std::string text_;
};

}  // namespace

std::string WhatIsKept(const LeakSuspect& suspect) {
  std::string what(KindText(suspect.kind));
  const analysis::Alive::Savers* savers = SaversOf(suspect);
  if (savers != nullptr && !savers->name.empty()) what += ", saved by " + savers->name;
  if (!suspect.library.empty()) what += " (" + suspect.library + ")";
  if (suspect.stacks.size() > 1) what += " (" + Plural(suspect.stacks.size(), "stack") + ")";
  return what;
}

std::string FixOf(const LeakSuspect& suspect) {
  if (suspect.tier == LeakTier::kPossible || !suspect.lock_step_with.empty()) return "";
  return suspect.option.empty() ? std::string(Fix(suspect.kind)) : OptionText(suspect.option);
}

std::string LeaksText(const LeakReport& report, const LeaksShown& shown,
                      analysis::SourceLines& sources, const Terminal& terminal) {
  return Writer(report, shown, sources, terminal).Write();
}

}  // namespace gmt::answers
