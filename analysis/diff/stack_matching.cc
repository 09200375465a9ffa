#include "analysis/diff/stack_matching.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/diff/file_renames.h"
#include "symbols/demangle.h"

namespace gmt::analysis {
namespace {

constexpr int kTiers = 4;
// Where a stack exported for PyTorch's viewer continues with the forward pass's stack, which an
// import also has as forward_frames.
constexpr std::string_view kForwardCall = "backward of this forward call:";
constexpr char kEnd = '\n';  // ends a frame or a part of a key; occurs in no name

// Returns the function, or the module's name: addresses differ between builds and processes.
std::string FunctionOrModule(const FrameText& frame) {
  if (!frame.function.empty()) return frame.function;
  return frame.module.substr(frame.module.rfind('/') + 1);
}

void AddExact(const std::vector<FrameText>& frames, std::string& key) {
  for (const FrameText& frame : frames) {
    absl::StrAppend(&key, frame.function.empty() ? frame.Name() : frame.function, "\t", frame.file,
                    "\t", frame.line, "\n");
  }
}

bool IsSeenByAll(const FrameText& frame) {
  return !frame.is_noise() && (frame.is_python() || frame.role == symbols::FrameRole::kOwn);
}

// The keys by which stacks of one recording are matched.
class Keys {
 public:
  // `renames`: its files' new names to their old ones; empty for the older recording. REQUIRES:
  // `renames` outlives this object.
  explicit Keys(const FileRenames& renames) : renames_(renames) {}

  // Returns "" if the stack has nothing to match by.
  std::string Of(const StackToMatch& stack, int tier) const {
    if (stack.frames.empty() && tier > 1) return "";
    std::string frames;
    Add(stack.frames, tier, frames);
    frames += kEnd;
    Add(stack.forward_frames, tier, frames);
    if (frames.size() == 1 && tier > 1) return "";
    const std::string category =
        tier == kTiers ? std::string(NameOf(stack.category)) : std::string();
    return absl::StrCat(stack.heap, "\n", category, "\n", frames);
  }

 private:
  void Add(const std::vector<FrameText>& frames, int tier, std::string& key) const {
    switch (tier) {
      case 1:
        return AddExact(frames, key);
      case 2:
        return AddMoved(frames, key);
      case 3:
        return AddShared(frames, key);
      default:
        return AddOwn(frames, key);
    }
  }

  std::string FileName(const FrameText& frame) const {
    std::string name = frame.FileName();
    const auto renamed = renames_.find(name);
    return renamed == renames_.end() ? name : renamed->second;
  }

  void AddMoved(const std::vector<FrameText>& frames, std::string& key) const {
    for (const FrameText& frame : frames) {
      absl::StrAppend(&key, FunctionOrModule(frame), "\t", FileName(frame), "\n");
    }
  }

  // For native code, some recorders report the file, others the module.
  void AddBare(const FrameText& frame, std::string& key) const {
    absl::StrAppend(&key, BareFunction(frame), "\t", frame.is_python() ? FileName(frame) : "",
                    "\n");
  }

  void AddShared(const std::vector<FrameText>& frames, std::string& key) const {
    for (const FrameText& frame : frames) {
      if (frame.function == kForwardCall) return;
      if (IsSeenByAll(frame)) AddBare(frame, key);
    }
  }

  void AddOwn(const std::vector<FrameText>& frames, std::string& key) const {
    const int own = OwnFrame(frames);
    if (own >= 0 && IsSeenByAll(frames[static_cast<size_t>(own)])) {
      return AddBare(frames[static_cast<size_t>(own)], key);
    }
    // A library's thread has no code of the program; the function that requested the memory is used
    // instead.
    for (const FrameText& frame : frames) {
      if (frame.role == symbols::FrameRole::kLibrary) return AddBare(frame, key);
    }
  }

  const FileRenames& renames_;
};

std::vector<uint32_t> LinesOf(const StackToMatch& stack) {
  std::vector<uint32_t> lines;
  for (const FrameText& frame : stack.frames) lines.push_back(frame.line);
  for (const FrameText& frame : stack.forward_frames) lines.push_back(frame.line);
  return lines;
}

class Matcher {
 public:
  Matcher(const std::vector<StackToMatch>& base, const std::vector<StackToMatch>& changed)
      : base_(base),
        changed_(changed),
        renames_(FindFileRenames(base, changed)),
        base_done_(base.size()),
        changed_done_(changed.size()) {}

  std::vector<StackMatch> Run() {
    for (int tier = 1; tier <= kTiers; ++tier) {
      const Candidates candidates = Unmatched(tier);
      for (const auto& [key, sides] : candidates) {
        if (!sides.base.empty() && !sides.changed.empty()) Pair(sides, tier);
      }
    }
    return std::move(matches_);
  }

 private:
  struct Sides {
    std::vector<size_t> base, changed;
  };
  using Candidates = std::map<std::string, Sides>;

  Candidates Unmatched(int tier) const {
    Candidates candidates;
    for (size_t i = 0; i < base_.size(); ++i) {
      if (base_done_[i]) continue;
      const std::string key = base_keys_.Of(base_[i], tier);
      if (!key.empty()) candidates[key].base.push_back(i);
    }
    for (size_t i = 0; i < changed_.size(); ++i) {
      if (changed_done_[i]) continue;
      const std::string key = changed_keys_.Of(changed_[i], tier);
      if (key.empty()) continue;
      if (const auto it = candidates.find(key); it != candidates.end()) {
        it->second.changed.push_back(i);
      }
    }
    return candidates;
  }

  void Match(size_t base, size_t changed, int tier) {
    base_done_[base] = changed_done_[changed] = true;
    matches_.push_back({base, changed, tier});
  }

  void Pair(Sides sides, int tier) {
    SortByAmount(base_, sides.base);
    SortByAmount(changed_, sides.changed);
    PairEqual(sides, tier);
    std::erase_if(sides.base, [&](size_t i) { return base_done_[i]; });
    std::erase_if(sides.changed, [&](size_t i) { return changed_done_[i]; });
    SortByLines(base_, sides.base);
    SortByLines(changed_, sides.changed);
    for (size_t i = 0; i < std::min(sides.base.size(), sides.changed.size()); ++i) {
      Match(sides.base[i], sides.changed[i], tier);
    }
  }

  // REQUIRES: both are sorted by amount.
  void PairEqual(const Sides& sides, int tier) {
    const auto amount = [](const StackToMatch& stack) {
      return std::pair(stack.bytes, stack.count);
    };
    size_t i = 0, j = 0;
    while (i < sides.base.size() && j < sides.changed.size()) {
      const auto a = amount(base_[sides.base[i]]), b = amount(changed_[sides.changed[j]]);
      if (a == b) {
        Match(sides.base[i++], sides.changed[j++], tier);
      } else if (a < b) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  static void SortByAmount(const std::vector<StackToMatch>& stacks, std::vector<size_t>& indices) {
    std::stable_sort(indices.begin(), indices.end(), [&](size_t a, size_t b) {
      const StackToMatch &x = stacks[a], &y = stacks[b];
      if (x.bytes != y.bytes) return x.bytes < y.bytes;
      if (x.count != y.count) return x.count < y.count;
      return LinesOf(x) < LinesOf(y);
    });
  }
  static void SortByLines(const std::vector<StackToMatch>& stacks, std::vector<size_t>& indices) {
    std::stable_sort(indices.begin(), indices.end(),
                     [&](size_t a, size_t b) { return LinesOf(stacks[a]) < LinesOf(stacks[b]); });
  }

  const std::vector<StackToMatch>&base_, &changed_;
  const FileRenames none_, renames_;
  const Keys base_keys_{none_}, changed_keys_{renames_};
  std::vector<bool> base_done_, changed_done_;
  std::vector<StackMatch> matches_;
};

}  // namespace

std::string BareFunction(const FrameText& frame) {
  if (!frame.is_python()) return symbols::BareName(frame.function);
  return frame.function.substr(frame.function.rfind('.') + 1);
}

std::vector<StackMatch> MatchStacks(const std::vector<StackToMatch>& base,
                                    const std::vector<StackToMatch>& changed) {
  return Matcher(base, changed).Run();
}

}  // namespace gmt::analysis
