#include "analysis/diff/file_renames.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

constexpr double kSame = 0.5;  // minimum share of common traits

// What a file's frames show: each function with its neighbours.
using Traits = std::set<std::string>;
using Files = std::map<std::string, Traits>;

void AddFrames(const std::vector<FrameText>& frames, Files& files) {
  const auto function = [&](size_t i) {
    return i < frames.size() ? BareFunction(frames[i]) : std::string();
  };
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].file.empty()) continue;
    Traits& traits = files[frames[i].FileName()];
    // A single function without a caller is no evidence: many are called "forward".
    if (frames[i].function.empty() || frames.size() == 1) continue;
    // For i = 0, i - 1 wraps around and is no frame's index.
    traits.insert(absl::StrCat(function(i - 1), "\n", function(i), "\n", function(i + 1)));
  }
}

Files FilesOf(const std::vector<StackToMatch>& stacks) {
  Files files;
  for (const StackToMatch& stack : stacks) {
    AddFrames(stack.frames, files);
    AddFrames(stack.forward_frames, files);
  }
  return files;
}

// Returns the fraction of all traits that both have.
double Likeness(const Traits& a, const Traits& b) {
  size_t both = 0;
  for (const std::string& trait : a) both += b.contains(trait) ? 1 : 0;
  const size_t all = a.size() + b.size() - both;
  return all == 0 ? 0 : static_cast<double>(both) / static_cast<double>(all);
}

struct Best {
  std::string file;
  double likeness = 0;
  bool is_sole = true;

  void Consider(const std::string& other, double how_like) {
    if (how_like < likeness) return;
    is_sole = how_like > likeness;
    file = other;
    likeness = how_like;
  }
};

}  // namespace

FileRenames FindFileRenames(const std::vector<StackToMatch>& base,
                            const std::vector<StackToMatch>& changed) {
  const Files before = FilesOf(base), after = FilesOf(changed);
  std::map<std::string, Best> of_vanished, of_appeared;
  for (const auto& [old_name, old_traits] : before) {
    if (after.contains(old_name)) continue;
    for (const auto& [new_name, new_traits] : after) {
      if (before.contains(new_name)) continue;
      const double likeness = Likeness(old_traits, new_traits);
      of_vanished[old_name].Consider(new_name, likeness);
      of_appeared[new_name].Consider(old_name, likeness);
    }
  }
  FileRenames renames;
  for (const auto& [new_name, old] : of_appeared) {
    const Best& back = of_vanished[old.file];
    if (old.likeness >= kSame && old.is_sole && back.is_sole && back.file == new_name) {
      renames[new_name] = old.file;
    }
  }
  return renames;
}

}  // namespace gmt::analysis
