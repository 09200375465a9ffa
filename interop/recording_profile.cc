#include "interop/recording_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interop/pprof_writer.h"

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
  std::set<int32_t> SelectedDevices() const {
    std::set<int32_t> devices;
    for (RowId row = 0; row < trace_.rows.count(); ++row) devices.insert(trace_.rows.device[row]);
    if (selection_.device)
      std::erase_if(devices, [&](int32_t d) { return d != *selection_.device; });
    return devices;
  }

  void CountRows() {
    const Rows& rows = trace_.rows;
    for (RowId row = 0; row < rows.count(); ++row) {
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

  absl::StatusOr<RecordingProfile> Write() {
    int64_t t_ns = 0;
    for (const auto& [device, instant] : instants_) t_ns = std::max(t_ns, instant.t_ns);
    PprofWriter writer(trace_.start_unix_ns + t_ns);
    RecordingProfile result;
    for (const auto& [site, values] : sites_) {
      const auto& [device, heap, stack] = site;
      writer.Add(examination_.stacks().Frames(stack), values,
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
    writer.AddComment(
        "kind=driver is memory from the driver; kind=pytorch are blocks inside of it: look at one, "
        "not at their sum");
    if (trace_.before) {
      result.lacks_allocations_before = true;
      writer.AddComment(
          "alloc_objects and alloc_space begin where the history that was kept begins; inuse is "
          "all");
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
  std::map<Site, PprofValues> sites_;
};

}  // namespace

absl::StatusOr<RecordingProfile> MakeProfile(const analysis::Examination& examination,
                                             const ProfileSelection& selection) {
  return ProfileMaker(examination, selection).Make();
}

}  // namespace gmt::interop
