#include "interop/profile/stack_profile.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "interop/profile/layer_selection.h"

namespace gmt::interop {

using analysis::FrameText;
using analysis::RowId;
using analysis::Rows;

namespace {

using analysis::Examination;
using analysis::Instant;
using analysis::Step;
using Sample = StackProfile::Sample;

using SiteKey = std::tuple<int32_t, uint32_t, uint32_t>;  // device, heap and stack
using InstantsByDevice = std::map<int32_t, std::vector<Instant>>;

// Returns the states of every site at the instants of its device, which are in order.
std::map<SiteKey, std::vector<Sample>> StatesAt(const InstantsByDevice& instants, const Rows& rows,
                                                const LayerSelection& layers) {
  const auto before = [](const Instant& instant, Step step) { return instant.step < step; };
  std::map<SiteKey, std::vector<Sample>> sites;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!layers.Selects(row)) continue;
    const std::vector<Instant>& of = instants.at(rows.device[row]);
    // The first instants that see the row allocated and freed.
    const auto born = std::lower_bound(of.begin(), of.end(), rows.birth[row], before) - of.begin();
    const auto died = std::lower_bound(of.begin(), of.end(), rows.death[row], before) - of.begin();
    if (static_cast<size_t>(born) == of.size()) continue;
    std::vector<Sample>& states = sites[{rows.device[row], rows.heap[row], rows.stack[row]}];
    states.resize(of.size());
    const auto size = static_cast<int64_t>(rows.size[row]);
    Sample& first = states[static_cast<size_t>(born)];
    ++first.alloc_objects;
    first.alloc_space += size;
    ++first.inuse_objects;
    first.inuse_space += size;
    if (static_cast<size_t>(died) == of.size()) continue;
    --states[static_cast<size_t>(died)].inuse_objects;
    states[static_cast<size_t>(died)].inuse_space -= size;
  }
  // So far, a sample has what changed since the instant before.
  for (auto& [site, states] : sites) {
    Sample sum;
    std::tie(sum.device, sum.heap, sum.stack) = site;
    for (Sample& state : states) {
      sum.alloc_objects += state.alloc_objects;
      sum.alloc_space += state.alloc_space;
      sum.inuse_objects += state.inuse_objects;
      sum.inuse_space += state.inuse_space;
      state = sum;
    }
  }
  return sites;
}

// Returns the instants of MakeStackHistories().
std::vector<Instant> InterestingInstants(const Examination& examination, int32_t device) {
  using analysis::At;
  constexpr size_t kMaxSteps = 16;
  const analysis::Trace& trace = examination.trace();
  std::vector<At> moments = {{At::kPeak, 0, 0, ""}, {At::kEnd, 0, 0, ""}};
  if (!trace.failed.empty()) moments.push_back({At::kOom, 0, 0, ""});
  const uint64_t steps = examination.cycles().cycles.size();
  const uint64_t shown = std::min<uint64_t>(steps, kMaxSteps);
  for (uint64_t i = 0; i < shown; ++i)
    moments.push_back({At::kCycle, 1 + i * (steps - 1) / std::max<uint64_t>(shown - 1, 1), 0, ""});
  for (auto snapshot = trace.snapshots.rbegin();
       snapshot != trace.snapshots.rend() && moments.size() < kMaxInstants; ++snapshot) {
    moments.push_back({At::kSnapshot, 0, 0, snapshot->name});
  }
  std::vector<Instant> instants;
  for (const At& moment : moments) {
    auto instant = InstantOn(examination, moment, device);
    if (instant.ok()) instants.push_back(*std::move(instant));
  }
  std::stable_sort(instants.begin(), instants.end(),
                   [](const Instant& a, const Instant& b) { return a.step < b.step; });
  const auto same = std::unique(instants.begin(), instants.end(),
                                [](const auto& a, const auto& b) { return a.step == b.step; });
  instants.erase(same, instants.end());
  return instants;
}

}  // namespace

absl::StatusOr<StackProfile> MakeStackProfile(const Examination& examination,
                                              const ProfileSelection& selection) {
  const analysis::Trace& trace = examination.trace();
  auto layers = LayerSelection::Make(trace, selection.device, selection.heap);
  if (!layers.ok()) return layers.status();
  StackProfile profile;
  profile.of_blocks = layers->of_blocks();
  profile.lacks_allocations_before = trace.before != nullptr;
  InstantsByDevice instants;
  for (const int32_t device : layers->devices()) {
    auto instant = InstantOn(examination, selection.at, device);
    if (!instant.ok()) return instant.status();
    instants[device] = {*instant};
    profile.instants.emplace(device, *std::move(instant));
  }
  for (const auto& [site, states] : StatesAt(instants, trace.rows, *layers))
    profile.samples.push_back(states.front());
  return profile;
}

std::vector<StackHistory> MakeStackHistories(const Examination& examination) {
  const analysis::Trace& trace = examination.trace();
  const auto layers = LayerSelection::Make(trace, std::nullopt, "");
  if (!layers.ok()) return {};  // not without a device or a heap
  InstantsByDevice instants;
  for (const int32_t device : layers->devices())
    instants[device] = InterestingInstants(examination, device);
  std::map<int32_t, StackHistory> histories;
  for (auto& [site, states] : StatesAt(instants, trace.rows, *layers))
    histories[std::get<0>(site)].sites.push_back(std::move(states));
  std::vector<StackHistory> all;
  for (auto& [device, history] : histories) {
    history.device = device;
    history.instants = std::move(instants[device]);
    all.push_back(std::move(history));
  }
  return all;
}

std::vector<FrameText> ProfileFrames(const analysis::Examination& examination, uint32_t stack) {
  const std::vector<FrameText>& frames = examination.stacks().Frames(stack);
  if (frames.empty()) {
    FrameText none;
    none.function = "(no stack)";
    return {none};
  }
  return {frames.begin() + std::max(analysis::LeadingFrame(frames), 0), frames.end()};
}

}  // namespace gmt::interop
