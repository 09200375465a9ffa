// interop/pprof/pprof_writer.h
//
// PprofWriter: writes a live set as a profile for `go tool pprof` and compatible tools, with the
// four values of a heap profile: alloc_objects, alloc_space, inuse_objects, inuse_space (the
// default).
//
//   PprofWriter writer(time_unix_ns);
//   writer.Add(frames, {.alloc_objects = 9, .inuse_objects = 2, ...}, {{"device", "cuda:0"}});
//   absl::StatusOr<std::string> gzipped = writer.Finish();
//
// The frames of allocation functions are named in drop_frames, so that tables show their callers.
// Invalid UTF-8 gets replacement characters, because readers would reject the whole profile.
//
// Thread safety: one thread at a time. Memory: each name and frame once, and the samples.

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
  // `duration_ns` is the time that a difference covers; 0: the values are of one moment.
  explicit PprofWriter(int64_t time_unix_ns, int64_t duration_ns = 0);
  ~PprofWriter();

  // `frames` are innermost first. No frames are shown as "(no stack)".
  void Add(const std::vector<analysis::FrameText>& frames, const PprofValues& values,
           const PprofLabels& labels);
  void AddComment(std::string_view text);

  const pprof::Profile& profile() const;
  // Returns the profile, compressed as the file format requires.
  absl::StatusOr<std::string> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PPROF_PPROF_WRITER_H_
