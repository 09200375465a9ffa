#include "analysis/diff/diff.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/diff/allocated.h"
#include "analysis/diff/differences.h"
#include "analysis/diff/stack_matching.h"

namespace gmt::analysis {
namespace {

constexpr size_t kWarmUpCycles = 2;

// One of the two recordings.
struct Side {
  const Examination& examination;
  const Categories& categories;

  const Trace& trace() const { return examination.trace(); }
  bool Has(int32_t device) const { return PeakBytes(device) > 0; }
  uint64_t PeakBytes(int32_t device) const {
    const auto& devices = examination.replay().devices();
    const auto found = devices.find(device);
    return found == devices.end() ? 0 : found->second.allocated.peak;
  }
};

// A device of both recordings; kNoDevice on a side that lacks it.
constexpr int32_t kNoDevice = -2;
struct DevicePair {
  int32_t base = kNoDevice, changed = kNoDevice;

  bool Is(int32_t device) const { return base == device || changed == device; }
};

std::set<int32_t> DevicesOf(const Side& side) {
  std::set<int32_t> devices;
  for (const auto& [device, totals] : side.examination.replay().devices()) {
    if (totals.allocated.peak > 0) devices.insert(device);
  }
  return devices;
}

// GPUs in order, then host memory. If each process has a single GPU, they are paired regardless of
// their numbers, because ranks number them differently.
std::vector<DevicePair> PairDevices(const Side& base, const Side& changed) {
  std::set<int32_t> a = DevicesOf(base), b = DevicesOf(changed);
  std::vector<DevicePair> pairs;
  const bool has_host = a.erase(kHostDevice) + b.erase(kHostDevice) > 0;
  if (a.size() == 1 && b.size() == 1) {
    pairs.push_back({*a.begin(), *b.begin()});
  } else {
    std::set<int32_t> all = a;
    all.insert(b.begin(), b.end());
    for (const int32_t device : all) {
      pairs.push_back(
          {a.contains(device) ? device : kNoDevice, b.contains(device) ? device : kNoDevice});
    }
  }
  if (has_host) {
    pairs.push_back({base.Has(kHostDevice) ? kHostDevice : kNoDevice,
                     changed.Has(kHostDevice) ? kHostDevice : kNoDevice});
  }
  return pairs;
}

const DeviceCycles* CyclesOn(const Side& side, int32_t device) {
  for (const DeviceCycles& cycles : side.examination.cycles().devices) {
    if (cycles.device == device) return &cycles;
  }
  return nullptr;
}

// Returns the step (from 1) of both recordings in which either holds most; 0 if there is none.
uint64_t CommonCycle(const Side& base, const Side& changed, const DevicePair& device) {
  const DeviceCycles* a = CyclesOn(base, device.base);
  const DeviceCycles* b = CyclesOn(changed, device.changed);
  if (a == nullptr || b == nullptr) return 0;
  uint64_t fullest = 0, most = 0;
  for (size_t i = kWarmUpCycles; i < std::min(a->cycles.size(), b->cycles.size()); ++i) {
    const uint64_t peak = std::max(a->cycles[i].peak, b->cycles[i].peak);
    if (fullest == 0 || peak > most) fullest = i + 1, most = peak;
  }
  return fullest;
}

absl::StatusOr<Instant> MomentOf(const Side& side, int32_t device, const At& at) {
  if (device == kNoDevice) return Instant{0, 0, "nothing was held"};
  return InstantOn(side.examination, at, device);
}

std::string StackId(const StackUse& use) {
  if (use.forward_stack == 0) return absl::StrCat("stack/", use.stack);
  return absl::StrCat("stack/", use.stack, "+", use.forward_stack);
}

std::vector<StackToMatch> Described(const Side& side, const AllocatedState& state) {
  std::vector<StackToMatch> stacks;
  for (const StackUse& use : state.stacks) {
    StackToMatch& stack = stacks.emplace_back();
    stack.heap = side.trace().heaps[use.heap];
    stack.frames = side.examination.stacks().Frames(use.stack);
    if (use.forward_stack != 0) {
      stack.forward_frames = side.examination.stacks().Frames(use.forward_stack);
    }
    stack.category = use.category;
    stack.bytes = use.bytes;
    stack.count = use.count;
  }
  return stacks;
}

class RowMaker {
 public:
  RowMaker(const AllocatedState& base, const AllocatedState& changed,
           std::vector<StackToMatch> base_stacks, std::vector<StackToMatch> changed_stacks)
      : base_(base),
        changed_(changed),
        base_stacks_(std::move(base_stacks)),
        changed_stacks_(std::move(changed_stacks)) {}

  void Run(Diff& diff) {
    std::vector<bool> base_done(base_stacks_.size()), changed_done(changed_stacks_.size());
    for (const StackMatch& match : MatchStacks(base_stacks_, changed_stacks_)) {
      base_done[match.base] = changed_done[match.changed] = true;
      AddBoth(match, diff);
    }
    for (size_t i = 0; i < base_done.size(); ++i) {
      if (base_done[i]) continue;
      ++diff.gone_stacks;
      DiffRow& row = Add(base_stacks_[i], diff);
      SetBase(i, row);
    }
    for (size_t i = 0; i < changed_done.size(); ++i) {
      if (changed_done[i]) continue;
      ++diff.new_stacks;
      DiffRow& row = Add(changed_stacks_[i], diff);
      SetChanged(i, row);
    }
    Sort(diff.rows);
  }

 private:
  void AddBoth(const StackMatch& match, Diff& diff) {
    const StackToMatch &a = base_stacks_[match.base], &b = changed_stacks_[match.changed];
    if (match.tier > 1) ++diff.moved_stacks;
    if (a.bytes == b.bytes && a.count == b.count) {
      ++diff.unchanged_stacks;
      diff.unchanged_bytes += a.bytes;
      return;
    }
    DiffRow& row = Add(b, diff);
    row.moved = match.tier > 1;
    SetBase(match.base, row);
    SetChanged(match.changed, row);
  }

  static DiffRow& Add(const StackToMatch& stack, Diff& diff) {
    DiffRow& row = diff.rows.emplace_back();
    row.heap = stack.heap;
    row.category = stack.category;
    row.frames = stack.frames;
    row.forward_frames = stack.forward_frames;
    return row;
  }
  void SetBase(size_t i, DiffRow& row) const {
    row.base_id = StackId(base_.stacks[i]);
    row.base_bytes = base_.stacks[i].bytes;
    row.base_count = base_.stacks[i].count;
    row.base_requested = base_.stacks[i].requested;
  }
  void SetChanged(size_t i, DiffRow& row) const {
    row.new_id = StackId(changed_.stacks[i]);
    row.new_bytes = changed_.stacks[i].bytes;
    row.new_count = changed_.stacks[i].count;
    row.new_requested = changed_.stacks[i].requested;
  }

  // Orders ties independently of which side is which.
  static void Sort(std::vector<DiffRow>& rows) {
    const auto magnitude = [](const DiffRow& row) {
      return row.new_bytes > row.base_bytes ? row.new_bytes - row.base_bytes
                                            : row.base_bytes - row.new_bytes;
    };
    std::stable_sort(rows.begin(), rows.end(), [&](const DiffRow& a, const DiffRow& b) {
      const uint64_t x = magnitude(a), y = magnitude(b);
      if (x != y) return x > y;
      const uint64_t larger = std::max(a.base_bytes, a.new_bytes);
      const uint64_t other = std::max(b.base_bytes, b.new_bytes);
      return larger > other;
    });
  }

  const AllocatedState &base_, &changed_;
  std::vector<StackToMatch> base_stacks_, changed_stacks_;
};

absl::Status In(const char* which, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(which, ": ", status.message()));
}

absl::StatusOr<Diff> CompareDevice(const Side& base, const Side& changed, const DevicePair& device,
                                   const std::optional<At>& requested) {
  Diff diff;
  diff.base_device = device.base == kNoDevice ? device.changed : device.base;
  diff.device = device.changed == kNoDevice ? device.base : device.changed;
  At at = requested.value_or(At{});
  if (const uint64_t cycle = requested ? 0 : CommonCycle(base, changed, device); cycle > 0) {
    at.kind = At::kCycle;
    at.number = cycle;
    diff.aligned_on = absl::StrCat("step ", cycle);
  }
  auto base_at = MomentOf(base, device.base, at);
  if (!base_at.ok()) return In("base", base_at.status());
  auto new_at = MomentOf(changed, device.changed, at);
  if (!new_at.ok()) return In("new", new_at.status());
  diff.base_at = *std::move(base_at);
  diff.new_at = *std::move(new_at);
  if (diff.aligned_on.empty()) {
    diff.aligned_on = at.kind == At::kPeak       ? "the peaks"
                      : device.base == kNoDevice ? diff.new_at.name
                                                 : diff.base_at.name;
  }
  const auto state = [&](const Side& side, int32_t of, const Instant& instant) {
    return of == kNoDevice ? AllocatedState{}
                           : AllocatedAfter(side.trace(), side.categories, of, instant.step);
  };
  const AllocatedState before = state(base, device.base, diff.base_at);
  const AllocatedState after = state(changed, device.changed, diff.new_at);
  diff.base_bytes = before.bytes;
  diff.new_bytes = after.bytes;
  diff.base_reserved_bytes = before.reserved_bytes;
  diff.new_reserved_bytes = after.reserved_bytes;
  diff.base_peak_bytes = base.PeakBytes(device.base);
  diff.new_peak_bytes = changed.PeakBytes(device.changed);
  RowMaker(before, after, Described(base, before), Described(changed, after)).Run(diff);
  return diff;
}

absl::Status NoSuchDevice(int32_t device, const Side& base, const Side& changed) {
  std::set<int32_t> devices = DevicesOf(base), more = DevicesOf(changed);
  devices.insert(more.begin(), more.end());
  devices.erase(kHostDevice);
  return absl::NotFoundError(absl::StrCat(
      "neither recording has memory on GPU ", device,
      devices.empty() ? "" : absl::StrCat("; they have: ", absl::StrJoin(devices, ", "))));
}

}  // namespace

absl::StatusOr<Comparison> Compare(const Examination& base, const Categories& base_categories,
                                   const Examination& changed, const Categories& changed_categories,
                                   const DiffOptions& options) {
  const Side before{base, base_categories};
  const Side after{changed, changed_categories};
  Comparison comparison;
  comparison.differences = DifferencesOf(base, changed);
  for (const DevicePair& device : PairDevices(before, after)) {
    if (options.device && !device.Is(*options.device)) continue;
    auto diff = CompareDevice(before, after, device, options.at);
    if (!diff.ok()) return diff.status();
    comparison.devices.push_back(*std::move(diff));
  }
  if (options.device && comparison.devices.empty()) {
    return NoSuchDevice(*options.device, before, after);
  }
  return comparison;
}

}  // namespace gmt::analysis
