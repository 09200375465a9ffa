#include "analysis/leaks/leak_kind.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
  const double length = std::max(1.0, static_cast<double>(cycles) - first.verdict.onset);
  const double rate = survivors / length;
  std::string text = rate >= 0.995
                         ? absl::StrFormat("%.3g blocks of every step are kept", rate)
                         : absl::StrFormat("one block of every %.3g steps is kept", 1 / rate);
  if (births == live) return text + ", none was ever freed";
  return absl::StrFormat("%s, of %.3g that each step makes there", text,
                         static_cast<double>(births) / std::max(1.0, static_cast<double>(cycles)));
}

}  // namespace gmt::analysis
