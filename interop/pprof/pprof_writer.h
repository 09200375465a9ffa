// interop/pprof/pprof_writer.h
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

#ifndef GMT_INTEROP_PPROF_PPROF_WRITER_H_
#define GMT_INTEROP_PPROF_PPROF_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/stacks/frames.h"

namespace gmt::pprof {
class Profile;
}

namespace gmt::interop {

struct PprofValues {
  int64_t alloc_objects = 0, alloc_space = 0, inuse_objects = 0, inuse_space = 0;
};
using PprofLabels = std::vector<std::pair<std::string, std::string>>;

class PprofWriter {
 public:
  // `duration_ns`: of a difference; 0: the values are of one moment.
  explicit PprofWriter(int64_t time_unix_ns, int64_t duration_ns = 0);
  ~PprofWriter();

  // `frames`: innermost first; none is shown as "(no stack)".
  void Add(const std::vector<analysis::FrameText>& frames, const PprofValues& values,
           const PprofLabels& labels);
  void AddComment(std::string_view text);

  const pprof::Profile& profile() const;
  // The profile, compressed as files of this format are.
  absl::StatusOr<std::string> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PPROF_PPROF_WRITER_H_
