#include "analysis/leaks/leak_kind.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/stack_phases.h"

namespace gmt::analysis {
namespace {

constexpr size_t kGraphStacks = 3;

bool IsModule(const FrameText& frame) {
  return frame.is_python() && frame.file.find("torch/nn/") != std::string::npos;
}

// Each block bigger than any before it, and the smaller ones kept.
bool IsRatchet(const SiteGrowth& site) {
  return site.new_maxima * 10 >= site.births * 6 && site.max_size > site.min_size;
}

// A whole number where it is about one: the first step and the last leave less.
std::string Number(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) <= 0.02 * value ? absl::StrFormat("%.0f", whole)
                                                 : absl::StrFormat("%.2g", value);
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
    const std::vector<FrameText>& frames = texts.Frames(TellingStack(site->key));
    return std::any_of(frames.begin(), frames.end(), IsModule);
  });
  if (group.size() >= kGraphStacks || (group.size() == 2 && of_model)) return LeakKind::kGraphKept;
  return LeakKind::kTensorKept;
}

std::string ReasonOf(const SiteGroup& group, LeakKind kind, uint64_t cycles) {
  const SiteGrowth& first = *group.front();
  if (kind == LeakKind::kCatGrowth) {
    return absl::StrCat("made anew ", first.births, " times, ever bigger; the old ones are freed");
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
  std::string text =
      rate >= 0.98
          ? Number(rate) + (Number(rate) == "1" ? " block" : " blocks") + " of every step kept"
          : absl::StrCat("1 block of every ", Number(1 / rate), " steps kept");
  if (births == live) return text + ", none ever freed";
  return absl::StrCat(text, ", of ", Number(static_cast<double>(births) / std::max(1.0, all)),
                      " a step made there");
}

}  // namespace gmt::analysis
