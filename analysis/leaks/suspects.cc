#include "analysis/leaks/suspects.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "analysis/stacks/module_path.h"

namespace gmt::analysis {
namespace {

// Tolerated difference of two distributions of survivors over time, in [0, 1], for lock-step.
constexpr double kSameLine = 0.05, kOtherLine = 0.01;
constexpr size_t kGraphStacks = 3;

using Path = std::vector<const FrameText*>;  // outermost first, without noise

Path PathOf(const SiteKey& key, StackTexts& texts) {
  Path path;
  const std::vector<FrameText>& frames = texts.Frames(OriginStack(key));
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!frame->is_noise()) path.push_back(&*frame);
  }
  return path;
}

bool SameFunction(const FrameText& a, const FrameText& b) {
  return a.function == b.function && a.file == b.file && a.module == b.module &&
         (!a.function.empty() || a.address == b.address);
}
bool SamePlace(const FrameText& a, const FrameText& b) {
  return SameFunction(a, b) && a.line == b.line && (a.line != 0 || a.address == b.address);
}

size_t CommonLength(const Path& a, const Path& b) {
  size_t length = 0;
  while (length < a.size() && length < b.size() && SamePlace(*a[length], *b[length])) ++length;
  return length;
}

// Returns the number of outermost frames that all stacks of the loop share.
size_t LoopDepth(const std::vector<Path>& paths) {
  const Path* first = nullptr;
  size_t depth = 0;
  for (const Path& path : paths) {
    const bool is_of_program = std::any_of(path.begin(), path.end(), [](const FrameText* frame) {
      return frame->role == symbols::FrameRole::kOwn && frame->is_python();
    });
    if (!is_of_program) continue;
    depth = first == nullptr ? path.size() : std::min(depth, CommonLength(*first, path));
    if (first == nullptr) first = &path;
  }
  return depth;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum_a = 0, sum_b = 0, distance = 0;
  const size_t n = std::min(a.size(), b.size());
  for (size_t i = 0; i < n; ++i) sum_a += a[i], sum_b += b[i];
  if (sum_a <= 0 || sum_b <= 0) return sum_a == sum_b ? 0 : 1;
  for (size_t i = 0; i < n; ++i) distance += std::abs(a[i] / sum_a - b[i] / sum_b);
  return distance / 2;
}

bool InLockStep(const SiteGrowth& a, const SiteGrowth& b, double tolerance) {
  if (a.key.device != b.key.device || a.key.heap != b.key.heap) return false;
  if (a.verdict.growth != b.verdict.growth) return false;
  if (a.verdict.growth == Growth::kRegrown) return a.births == b.births;
  return Distance(a.verdict.survivors, b.verdict.survivors) <= tolerance;
}

// Layers of a model are Python code of a library, between the program's line and the operator.
bool IsOfModel(const Path& path) {
  bool own = false;
  for (const FrameText* frame : path) {
    if (!frame->is_python()) continue;
    if (own && frame->role == symbols::FrameRole::kLibrary) return true;
    own |= frame->role == symbols::FrameRole::kOwn;
  }
  return false;
}

class Merger {
 public:
  Merger(const std::vector<SiteGrowth>& leaking, const std::vector<SiteKey>& loop,
         StackTexts& texts) {
    std::vector<Path> paths;
    for (const SiteKey& key : loop) paths.push_back(PathOf(key, texts));
    for (const SiteGrowth& site : leaking) {
      paths.push_back(PathOf(site.key, texts));
      sites_.push_back({&site, paths.back()});
    }
    depth_ = LoopDepth(paths);
    std::stable_sort(sites_.begin(), sites_.end(), [](const Site& a, const Site& b) {
      return a.growth->verdict.bytes_per_cycle.slope > b.growth->verdict.bytes_per_cycle.slope;
    });
  }

  std::vector<SiteGroup> Merge() && {
    for (const Site& site : sites_) Join(site);
    JoinGraphs();
    std::vector<SiteGroup> merged;
    for (const std::vector<const Site*>& group : groups_) {
      SiteGroup& sites = merged.emplace_back();
      for (const Site* site : group) sites.push_back(site->growth);
    }
    return merged;
  }

 private:
  struct Site {
    const SiteGrowth* growth = nullptr;
    Path path;
  };
  using Group = std::vector<const Site*>;

  const FrameText* LoopLine(const Site& site) const {
    if (site.path.empty()) return nullptr;
    return site.path[std::min(depth_, site.path.size() - 1)];
  }
  bool ThroughSameLine(const Site& a, const Site& b) const {
    const FrameText *line_a = LoopLine(a), *line_b = LoopLine(b);
    if (line_a == nullptr || line_b == nullptr) return line_a == line_b;
    return SamePlace(*line_a, *line_b);
  }
  bool ThroughSameFunction(const Site& a, const Site& b) const {
    const FrameText *line_a = LoopLine(a), *line_b = LoopLine(b);
    return line_a != nullptr && line_b != nullptr && SameFunction(*line_a, *line_b);
  }

  void Join(const Site& site) {
    for (Group& group : groups_) {
      if (!ThroughSameLine(*group.front(), site)) continue;
      if (InLockStep(*group.front()->growth, *site.growth, kSameLine))
        return group.push_back(&site);
    }
    groups_.push_back({&site});
  }

  // The graph of one pass comes from several lines of the loop: those of the model and of the loss.
  void JoinGraphs() {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].size() < kGraphStacks) continue;
      for (size_t j = 0; j < groups_.size();) {
        if (j == i || !IsOfSamePass(*groups_[i].front(), *groups_[j].front())) {
          ++j;
          continue;
        }
        groups_[i].insert(groups_[i].end(), groups_[j].begin(), groups_[j].end());
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(j));
        if (j < i) --i;
      }
    }
  }
  bool IsOfSamePass(const Site& graph, const Site& other) const {
    return IsOfModel(other.path) && ThroughSameFunction(graph, other) &&
           InLockStep(*graph.growth, *other.growth, kOtherLine);
  }

  std::vector<Site> sites_;
  size_t depth_ = 0;
  std::vector<Group> groups_;
};

// Returns the fastest growing sites with 95 % of the growth, so that a negligible stack cannot hide
// the origin of the rest.
SiteGroup MostOf(const SiteGroup& group) {
  constexpr double kShare = 0.95;
  const auto rate = [](const SiteGrowth* site) {
    return std::max(site->verdict.bytes_per_cycle.slope, 0.0);
  };
  SiteGroup most = group;
  std::stable_sort(most.begin(), most.end(),
                   [&](const SiteGrowth* a, const SiteGrowth* b) { return rate(a) > rate(b); });
  double all = 0, sum = 0;
  for (const SiteGrowth* site : most) all += rate(site);
  size_t count = 0;
  while (count < most.size() && (count == 0 || sum < kShare * all)) sum += rate(most[count++]);
  most.resize(count);
  return most;
}

}  // namespace

std::vector<SiteGroup> MergeLeaks(const std::vector<SiteGrowth>& leaking,
                                  const std::vector<SiteKey>& loop, StackTexts& texts) {
  return Merger(leaking, loop, texts).Merge();
}

bool GrowInLockStep(const SiteGroup& a, const SiteGroup& b) {
  return InLockStep(*a.front(), *b.front(), kOtherLine);
}

std::string CommonLayer(const SiteGroup& group, StackTexts& texts) {
  std::optional<std::vector<std::string>> common;
  for (const SiteGrowth* site : MostOf(group)) {
    const std::vector<std::string> classes =
        absl::StrSplit(ModulePath(texts.Frames(OriginStack(site->key))), " > ");
    if (!common) common = classes;
    const auto [end, unused] =
        std::mismatch(common->begin(), common->end(), classes.begin(), classes.end());
    common->erase(end, common->end());
  }
  return absl::StrJoin(*common, " > ");
}

std::optional<FrameText> CommonFrame(const SiteGroup& group, StackTexts& texts) {
  std::vector<Path> paths;
  for (const SiteGrowth* site : MostOf(group)) paths.push_back(PathOf(site->key, texts));
  const Path& first = paths.front();
  size_t depth = first.size();
  for (const Path& path : paths) depth = std::min(depth, CommonLength(first, path));
  const bool same_function = std::all_of(paths.begin(), paths.end(), [&](const Path& path) {
    return depth < std::min(first.size(), path.size()) && SameFunction(*first[depth], *path[depth]);
  });
  if (same_function && first[depth]->function.find("forward") == std::string::npos) ++depth;
  // The program's Python code takes precedence; native code is used only without Python.
  const FrameText* found = nullptr;
  for (size_t i = 0; i < depth; ++i) {
    const bool own = first[i]->role == symbols::FrameRole::kOwn;
    if (own && (found == nullptr || first[i]->is_python() || !found->is_python())) found = first[i];
  }
  if (found != nullptr) return *found;
  const FrameText* own = group.size() == 1 ? texts.Own(OriginStack(group.front()->key)) : nullptr;
  return own != nullptr ? std::optional(*own) : std::nullopt;
}

}  // namespace gmt::analysis
