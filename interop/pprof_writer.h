// interop/pprof_writer.h
//
// PprofWriter: a live set as a profile for `go tool pprof` and its descendants, with the four values
// of a heap profile: alloc_objects, alloc_space, inuse_objects, inuse_space (the default).
//
//   PprofWriter writer(time_unix_ns);
//   writer.Add(frames, {.alloc_objects = 9, .inuse_objects = 2, ...}, {{"device", "cuda:0"}});
//   absl::StatusOr<std::string> gzipped = writer.Finish();
//
// Frames of the allocation functions themselves are named in drop_frames, so that tables show who
// called them. Text that is no UTF-8 gets replacement characters: readers refuse the whole profile
// else.
//
// Thread safety: one thread at a time. Memory: names and frames once each, and the samples.

#ifndef GMT_INTEROP_PPROF_WRITER_H_
#define GMT_INTEROP_PPROF_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "analysis/frames.h"
#include "proto/pprof.pb.h"

namespace gmt::interop {

struct PprofValues {
  int64_t alloc_objects = 0, alloc_space = 0, inuse_objects = 0, inuse_space = 0;
};
using PprofLabels = std::vector<std::pair<std::string, std::string>>;

class PprofWriter {
 public:
  // `duration_ns`: of a difference; 0: the values are of one moment.
  explicit PprofWriter(int64_t time_unix_ns, int64_t duration_ns = 0);

  // `frames`: innermost first; none is shown as "(no stack)".
  void Add(const std::vector<analysis::FrameText>& frames, const PprofValues& values,
           const PprofLabels& labels);
  void AddComment(std::string_view text) { profile_.add_comment(Text(text)); }

  const pprof::Profile& profile() const { return profile_; }
  // The profile, compressed as files of this format are.
  absl::StatusOr<std::string> Finish();

 private:
  int64_t Text(std::string_view text);
  uint64_t MappingOf(const std::string& module);
  uint64_t FunctionOf(const analysis::FrameText& frame);
  uint64_t LocationOf(const analysis::FrameText& frame);

  pprof::Profile profile_;
  absl::flat_hash_map<std::string, int64_t> texts_;
  absl::flat_hash_map<std::string, uint64_t> mappings_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint64_t> functions_;  // name, file
  absl::flat_hash_map<std::tuple<uint64_t, uint64_t, uint32_t>, uint64_t> locations_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PPROF_WRITER_H_
