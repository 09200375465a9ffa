#include "interop/pprof/recording_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/stacks/frames.h"
#include "interop/pprof/pprof_writer.h"

namespace gmt::interop {
namespace {

using analysis::Instant;
using analysis::kHostDevice;
using analysis::RowId;
using analysis::Rows;
using Site = std::tuple<int32_t, uint32_t, uint32_t>;  // device, heap, stack

class ProfileMaker {
 public:
  ProfileMaker(const analysis::Examination& examination, const ProfileSelection& selection)
      : examination_(examination), trace_(examination.trace()), selection_(selection) {}

  absl::StatusOr<RecordingProfile> Make() {
    if (!selection_.heap.empty() && std::find(trace_.heaps.begin(), trace_.heaps.end(),
                                              selection_.heap) == trace_.heaps.end()) {
      return absl::NotFoundError(
          absl::StrCat("no heap '", selection_.heap,
                       "' was recorded; recorded heaps: ", absl::StrJoin(trace_.heaps, ", ")));
    }
    for (const int32_t device : SelectedDevices()) {
      auto instant = InstantOn(examination_, selection_.at, device);
      if (!instant.ok()) return instant.status();
      instants_.emplace(device, *std::move(instant));
    }
    if (selection_.device && instants_.empty()) {
      return absl::NotFoundError(
          absl::StrCat("device ", *selection_.device, " holds nothing in this recording"));
    }
    CountRows();
    return Write();
  }

 private:
  std::set<int32_t> SelectedDevices() {
    const Rows& rows = trace_.rows;
    std::set<int32_t> devices;
    for (RowId row = 0; row < rows.count(); ++row) {
      devices.insert(rows.device[row]);
      if (IsBlock(row)) with_blocks_.insert(rows.device[row]);
    }
    if (devices.size() > 1 && selection_.heap.empty()) devices.erase(kHostDevice);
    if (selection_.device)
      std::erase_if(devices, [&](int32_t d) { return d != *selection_.device; });
    return devices;
  }

  bool IsBlock(RowId row) const {
    return trace_.rows.heap[row] > analysis::kHostHeap && !trace_.rows.IsRegion(row);
  }

  bool IsSelected(RowId row) const {
    const Rows& rows = trace_.rows;
    if (!selection_.heap.empty()) return trace_.heaps[rows.heap[row]] == selection_.heap;
    return with_blocks_.contains(rows.device[row]) ? IsBlock(row)
                                                   : rows.heap[row] <= analysis::kHostHeap;
  }

  void CountRows() {
    const Rows& rows = trace_.rows;
    for (RowId row = 0; row < rows.count(); ++row) {
      if (!IsSelected(row)) continue;
      const auto instant = instants_.find(rows.device[row]);
      if (instant == instants_.end() || rows.birth[row] > instant->second.step) continue;
      PprofValues& values = sites_[{rows.device[row], rows.heap[row], rows.stack[row]}];
      const auto size = static_cast<int64_t>(rows.size[row]);
      ++values.alloc_objects;
      values.alloc_space += size;
      if (!rows.HeldAfter(row, instant->second.step)) continue;
      ++values.inuse_objects;
      values.inuse_space += size;
    }
  }

  // Returns the frames from the called function outwards.
  static std::vector<analysis::FrameText> Called(const std::vector<analysis::FrameText>& frames) {
    const int called = analysis::LeadingFrame(frames);
    return {frames.begin() + std::max(called, 0), frames.end()};
  }

  absl::StatusOr<RecordingProfile> Write() {
    int64_t t_ns = 0;
    for (const auto& [device, instant] : instants_) t_ns = std::max(t_ns, instant.t_ns);
    PprofWriter writer(trace_.start_unix_ns + t_ns);
    RecordingProfile result;
    for (const auto& [site, values] : sites_) {
      const auto& [device, heap, stack] = site;
      writer.Add(Called(examination_.stacks().Frames(stack)), values,
                 {{"device", device == kHostDevice ? "host" : absl::StrCat("cuda:", device)},
                  {"kind", trace_.heaps[heap]}});
      ++result.samples;
      result.inuse_bytes += values.inuse_space;
    }
    for (const auto& [device, instant] : instants_) {
      writer.AddComment(absl::StrCat(device == kHostDevice ? "host" : absl::StrCat("cuda:", device),
                                     " at ", instant.name, ", ",
                                     static_cast<double>(instant.t_ns) / 1e9, " s"));
    }
    if (selection_.heap.empty() && !with_blocks_.empty()) {
      writer.AddComment(
          "blocks of the framework's allocator; for the driver memory that contains them: "
          "--heap driver");
    }
    if (trace_.before) {
      result.lacks_allocations_before = true;
      writer.AddComment(
          "alloc_objects and alloc_space cover only the kept history; inuse is complete");
    }
    auto gzipped = writer.Finish();
    if (!gzipped.ok()) return gzipped.status();
    result.gzipped = *std::move(gzipped);
    return result;
  }

  const analysis::Examination& examination_;
  const analysis::Trace& trace_;
  const ProfileSelection& selection_;
  std::map<int32_t, Instant> instants_;  // by device
  std::set<int32_t> with_blocks_;        // devices
  std::map<Site, PprofValues> sites_;
};

}  // namespace

absl::StatusOr<RecordingProfile> MakeProfile(const analysis::Examination& examination,
                                             const ProfileSelection& selection) {
  return ProfileMaker(examination, selection).Make();
}

}  // namespace gmt::interop
