#include "interop/pprof/recording_profile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interop/pprof/pprof_writer.h"
#include "interop/profile/layer_selection.h"

namespace gmt::interop {

absl::StatusOr<RecordingProfile> MakeProfile(const analysis::Examination& examination,
                                             const ProfileSelection& selection) {
  const auto profile = MakeStackProfile(examination, selection);
  if (!profile.ok()) return profile.status();
  const analysis::Trace& trace = examination.trace();
  int64_t t_ns = 0;
  for (const auto& [device, instant] : profile->instants) t_ns = std::max(t_ns, instant.t_ns);
  PprofWriter writer(trace.start_unix_ns + t_ns);
  RecordingProfile result;
  for (const StackProfile::Sample& sample : profile->samples) {
    writer.Add(ProfileFrames(examination, sample.stack),
               {sample.alloc_objects, sample.alloc_space, sample.inuse_objects, sample.inuse_space},
               {{"device", DeviceLabel(sample.device)}, {"kind", trace.heaps[sample.heap]}});
    ++result.samples;
    result.inuse_bytes += sample.inuse_space;
  }
  for (const auto& [device, instant] : profile->instants) {
    writer.AddComment(absl::StrCat(DeviceLabel(device), " at ", instant.name, ", ",
                                   static_cast<double>(instant.t_ns) / 1e9, " s"));
  }
  if (profile->of_blocks) {
    writer.AddComment(
        "blocks of the framework's allocator; for the driver memory that contains them: "
        "--heap driver");
  }
  if (profile->lacks_allocations_before) {
    result.lacks_allocations_before = true;
    writer.AddComment(
        "alloc_objects and alloc_space cover only the kept history; inuse is complete");
  }
  auto gzipped = writer.Finish();
  if (!gzipped.ok()) return gzipped.status();
  result.gzipped = *std::move(gzipped);
  return result;
}

}  // namespace gmt::interop
