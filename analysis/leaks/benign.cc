#include "analysis/leaks/benign.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "analysis/leaks/suspects.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxNamed = 20;

uint64_t CycleNumber(double cycle) { return Whole(cycle) + 1; }

bool AnyFrame(const std::vector<FrameText>& frames, bool (*matches)(const FrameText&)) {
  return std::any_of(frames.begin(), frames.end(), matches);
}
bool IsOptimizer(const FrameText& frame) {
  return frame.is_python() && frame.file.find("/optim/") != std::string::npos;
}
bool IsProfiler(const FrameText& frame) {
  return frame.role == symbols::FrameRole::kProfiler ||
         frame.module.find("libcupti") != std::string::npos ||
         frame.function.find("libkineto") != std::string::npos;
}

bool IsKvCache(const FrameText& frame) {
  return frame.file.find("/transformers/cache_utils.py") != std::string::npos;
}
bool IsGeneration(const FrameText& frame) {
  return frame.file.find("/transformers/generation/") != std::string::npos;
}

// Returns "" if the growth needs no mention because it was there from the first cycle on.
std::string LabelOf(const SiteGrowth& site, const std::vector<FrameText>& frames) {
  const SiteVerdict& verdict = site.verdict;
  const uint64_t from = CycleNumber(verdict.onset), until = CycleNumber(verdict.end);
  const bool at_once = verdict.growth == Growth::kOnce;
  if (at_once && AnyFrame(frames, IsOptimizer))
    return absl::StrCat("optimizer state (step ", from, ")");
  // Stacks of PyTorch's own recorder begin with its frames, and a profiler never owns blocks.
  if (site.key.heap <= kHostHeap && AnyFrame(frames, IsProfiler))
    return "the profiler's own buffers";
  switch (verdict.growth) {
    case Growth::kWarming:
      return "cache that fills at a decreasing rate";
    case Growth::kQueue:
      return absl::StrCat("queue of ", verdict.count, ", full since step ", until);
    case Growth::kEvicted:
      return absl::StrCat("cache of ", verdict.count, " that evicts, full since step ", until);
    case Growth::kFromBefore:
      return "replaces blocks from before the recording";
    case Growth::kMaxima:
      return absl::StrCat("buffer as large as the largest item so far, since step ", until);
    case Growth::kBursts:
      return absl::StrCat("freed at once about every ", verdict.lifetime,
                          " steps (gc, or a cleared list)");
    case Growth::kOnce:
      return verdict.onset > 0 ? absl::StrCat("allocated once, at step ", from) : "";
    case Growth::kEnded:
      return absl::StrCat("grew from step ", from, " to step ", until, ", not since");
    case Growth::kRegrown:
      if (AnyFrame(frames, IsKvCache)) return "the KV cache of the sequences being generated";
      return AnyFrame(frames, IsGeneration) ? "tokens of the sequences being generated" : "";
    case Growth::kNone:
    case Growth::kSurvivors:
      return "";
  }
  return "";
}

}  // namespace

bool IsOfGeneration(const SiteGrowth& site, StackTexts& texts) {
  if (site.verdict.growth != Growth::kRegrown) return false;
  const std::vector<FrameText>& frames = texts.Frames(OriginStack(site.key));
  return AnyFrame(frames, IsKvCache) || AnyFrame(frames, IsGeneration);
}

std::vector<BenignGrowth> NameBenign(const LeakEvidence& evidence, StackTexts& texts) {
  std::vector<BenignGrowth> named;
  for (const SiteGrowth& site : evidence.grown) {
    const uint32_t stack = OriginStack(site.key);
    std::string label = LabelOf(site, texts.Frames(stack));
    if (label.empty()) continue;
    const FrameText* own = texts.Own(stack);
    const auto room = evidence.rooms.find(site.key.device);
    named.push_back({std::move(label), own != nullptr ? std::optional(*own) : std::nullopt,
                     site.key.stack, site.verdict.bytes,
                     IsOfGeneration(site, texts) ? site.verdict.bytes_per_cycle.slope : 0,
                     room == evidence.rooms.end() ? std::nullopt : std::optional(room->second)});
  }
  // An allocator's pool that grows while its blocks do not is fragmented; that is not a leak.
  for (const PoolGrowth& pool : evidence.pools) {
    named.push_back({"the allocator's pool grew but its blocks did not: see frag", std::nullopt, 0,
                     pool.bytes, 0, std::nullopt});
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  // Merges growth with the same label at the same line.
  std::vector<BenignGrowth> merged;
  for (BenignGrowth& growth : named) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const BenignGrowth& other) {
      return other.label == growth.label && other.frame.has_value() == growth.frame.has_value() &&
             (!growth.frame ||
              (other.frame->file == growth.frame->file && other.frame->line == growth.frame->line));
    });
    if (same != merged.end()) {
      same->bytes += growth.bytes;
      same->bytes_per_cycle += growth.bytes_per_cycle;
    } else if (merged.size() < kMaxNamed) {
      merged.push_back(std::move(growth));
    }
  }
  return merged;
}

}  // namespace gmt::analysis
