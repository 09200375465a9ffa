#include "interop/profile/speedscope.h"

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interop/profile/layer_selection.h"

namespace gmt::interop {
namespace {

using nlohmann::ordered_json;

class SpeedscopeFrames {
 public:
  // Returns the indices of the frames of a stack, outermost first.
  ordered_json IndicesOf(const std::vector<analysis::FrameText>& frames) {
    ordered_json indices = ordered_json::array();
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      indices.push_back(IndexOf(*frame));
    return indices;
  }
  ordered_json Take() { return std::move(frames_); }

 private:
  size_t IndexOf(const analysis::FrameText& frame) {
    const auto [it, is_new] = indices_.try_emplace({frame.Name(), frame.file}, indices_.size());
    if (is_new) {
      ordered_json& written = frames_.emplace_back(ordered_json{{"name", frame.Name()}});
      if (!frame.file.empty()) written["file"] = frame.file;
    }
    return it->second;
  }

  std::map<std::pair<std::string, std::string>, size_t> indices_;  // by function and file
  ordered_json frames_ = ordered_json::array();
};

struct HeapProfiles {
  ordered_json stacks = ordered_json::array(), held = stacks, allocated = stacks;
  int64_t held_bytes = 0, allocated_bytes = 0;
};

ordered_json SampledProfile(const std::string& name, const ordered_json& samples,
                            const ordered_json& weights, int64_t total) {
  return {{"type", "sampled"}, {"name", name},       {"unit", "bytes"},   {"startValue", 0},
          {"endValue", total}, {"samples", samples}, {"weights", weights}};
}

}  // namespace

std::string SpeedscopeJson(const analysis::Examination& examination, const StackProfile& profile,
                           absl::string_view name) {
  SpeedscopeFrames frames;
  std::map<std::pair<int32_t, uint32_t>, HeapProfiles> heaps;  // by device and heap
  for (const StackProfile::Sample& sample : profile.samples) {
    HeapProfiles& heap = heaps[{sample.device, sample.heap}];
    heap.stacks.push_back(frames.IndicesOf(ProfileFrames(examination, sample.stack)));
    heap.held.push_back(sample.inuse_space);
    heap.allocated.push_back(sample.alloc_space);
    heap.held_bytes += sample.inuse_space;
    heap.allocated_bytes += sample.alloc_space;
  }
  ordered_json profiles = ordered_json::array();
  size_t shown = 0;
  int64_t most = -1;
  for (const auto& [key, heap] : heaps) {
    const auto& [device, number] = key;
    const std::string where =
        absl::StrCat(DeviceLabel(device), " ", examination.trace().heaps[number]);
    if (heap.held_bytes > most) most = heap.held_bytes, shown = profiles.size();
    profiles.push_back(
        SampledProfile(absl::StrCat(where, ": held at ", profile.instants.at(device).name),
                       heap.stacks, heap.held, heap.held_bytes));
    profiles.push_back(SampledProfile(absl::StrCat(where, ": allocated in total until then"),
                                      heap.stacks, heap.allocated, heap.allocated_bytes));
  }
  if (profiles.empty()) {
    profiles.push_back(
        SampledProfile("nothing was allocated", ordered_json::array(), ordered_json::array(), 0));
  }
  const ordered_json file = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                             {"shared", {{"frames", frames.Take()}}},
                             {"profiles", std::move(profiles)},
                             {"name", std::string(name)},
                             {"activeProfileIndex", shown},
                             {"exporter", "gpumemtrace"}};
  // Only ASCII, so that printing the file does not send control characters to a terminal.
  return file.dump(-1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gmt::interop
