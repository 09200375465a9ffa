#include "analysis/leaks/leak_kind.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/leaks/site_history.h"
#include "analysis/loop/stack_phases.h"

namespace gmt::analysis {
namespace {

constexpr size_t kGraphStacks = 3;

bool IsModule(const FrameText& frame) {
  return frame.is_python() && frame.file.find("torch/nn/") != std::string::npos;
}

// Whether each block is bigger than all before it, and the smaller ones are kept.
bool IsRatchet(const SiteGrowth& site) {
  return site.new_maxima * 10 >= site.births * 6 && site.max_size > site.min_size;
}

// Rounds to an integer if the value is close to one: the first and last step leave less.
std::string Number(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) <= 0.02 * value ? absl::StrFormat("%.0f", whole)
                                                 : absl::StrFormat("%.2g", value);
}

std::string Blocks(double count) {
  const std::string number = Number(count);
  return number + (number == "1" ? " block" : " blocks");
}

// Blocks that are kept periodically; `period` in cycles.
struct Rhythm {
  double blocks = 0, period = 0;
};

// Returns the number of cycles per chunk of SiteVerdict::survivors.
uint32_t ChunkLength(uint64_t cycles) {
  uint32_t length = 1;
  while (cycles / length >= ChunkGrid::kMaxChunks) length *= 2;
  return length;
}

// Returns nullopt if something is kept in most chunks, or at unequal gaps.
std::optional<Rhythm> RhythmOf(const SiteGroup& group, uint64_t cycles) {
  constexpr size_t kMinBursts = 4;
  std::vector<double> kept;  // by chunk
  for (const SiteGrowth* site : group) {
    const std::vector<double>& survivors = site->verdict.survivors;
    kept.resize(std::max(kept.size(), survivors.size()));
    for (size_t i = 0; i < survivors.size(); ++i) kept[i] += survivors[i];
  }
  std::vector<size_t> bursts;
  double blocks = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] <= 0) continue;
    bursts.push_back(i);
    blocks += kept[i];
  }
  if (bursts.size() < kMinBursts) return std::nullopt;
  size_t least = SIZE_MAX, most = 0;
  for (size_t i = 1; i < bursts.size(); ++i) {
    least = std::min(least, bursts[i] - bursts[i - 1]);
    most = std::max(most, bursts[i] - bursts[i - 1]);
  }
  if (least < 2 || most - least > 1) return std::nullopt;
  const auto gaps = static_cast<double>(bursts.size() - 1);
  const auto chunks = static_cast<double>(bursts.back() - bursts.front());
  return Rhythm{blocks / static_cast<double>(bursts.size()),
                std::round(chunks / gaps * ChunkLength(cycles))};
}

}  // namespace

LeakKind KindOf(const SiteGroup& group, StackTexts& texts) {
  const SiteGrowth& first = *group.front();
  uint64_t bytes = 0, awaiting = 0;
  for (const SiteGrowth* site : group) {
    bytes += site->verdict.bytes;
    awaiting += site->awaiting_bytes;
  }
  if (awaiting > 0 && awaiting >= bytes / 2) return LeakKind::kAwaiting;
  if (first.key.heap == kHostHeap) return LeakKind::kPinnedHost;
  if (first.verdict.growth == Growth::kRegrown) return LeakKind::kCatGrowth;
  if (first.key.heap == kDriverHeap)
    return IsRatchet(first) ? LeakKind::kPoolRatchet : LeakKind::kDriver;
  StackPhases phases(texts.definitions());
  const bool of_optimizer = std::all_of(group.begin(), group.end(), [&](const SiteGrowth* site) {
    return phases.Of(site->key.stack) == StackPhase::kOptimizer;
  });
  if (of_optimizer) return LeakKind::kOptimizerGrows;
  const bool of_model = std::any_of(group.begin(), group.end(), [&](const SiteGrowth* site) {
    const std::vector<FrameText>& frames = texts.Frames(OriginStack(site->key));
    return std::any_of(frames.begin(), frames.end(), IsModule);
  });
  if (group.size() >= kGraphStacks || (group.size() == 2 && of_model)) return LeakKind::kGraphKept;
  return LeakKind::kTensorKept;
}

std::string ReasonOf(const SiteGroup& group, LeakKind kind, uint64_t cycles) {
  const SiteGrowth& first = *group.front();
  if (kind == LeakKind::kCatGrowth) {
    return absl::StrCat("reallocated ", first.births,
                        " times, larger each time; the old ones are freed");
  }
  double survivors = 0;
  uint64_t births = 0, live = 0;
  for (const SiteGrowth* site : group) {
    survivors += static_cast<double>(site->verdict.count);
    births += site->births;
    live += site->live_count;
  }
  const auto all = static_cast<double>(cycles);
  const double rate = survivors / std::max(1.0, all - first.verdict.onset);
  std::string text;
  if (const std::optional<Rhythm> rhythm = RhythmOf(group, cycles)) {
    text = absl::StrCat(Blocks(rhythm->blocks), " kept every ", Number(rhythm->period), " steps");
  } else if (rate >= 0.98) {
    text = Blocks(rate) + " kept per step";
  } else {
    text = absl::StrCat("1 block kept every ", Number(1 / rate), " steps");
  }
  if (births == live) return text + ", none ever freed";
  return absl::StrCat(text, ", of ", Number(static_cast<double>(births) / std::max(1.0, all)),
                      " allocated there per step");
}

std::string OptionFor(const SiteGroup& group, LeakKind kind, StackTexts& texts) {
  if (kind != LeakKind::kCatGrowth) return "";
  // Predictions are concatenated on the GPU until there are as many batches as the option says.
  for (const FrameText& frame : texts.Frames(group.front()->key.stack)) {
    const bool evaluates =
        frame.function.ends_with("evaluation_loop") || frame.function.ends_with("prediction_loop");
    if (evaluates && frame.file.ends_with("/transformers/trainer.py"))
      return "eval_accumulation_steps";
  }
  return "";
}

}  // namespace gmt::analysis
