// viewer/live/live_source.h
//
// LiveSource: reports the state of a recorded process: the path of its recording, its current
// memory, and whether it has ended. The blocks themselves come from the recording
// (viewer/live/live_recording.h).
//
// Thread safety: Wait() from one thread, Stop() from any.

#ifndef GMT_VIEWER_LIVE_LIVE_SOURCE_H_
#define GMT_VIEWER_LIVE_LIVE_SOURCE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gmt::viewer {

struct LiveNews {
  enum class State {
    kFollowing,
    kLost,   // not being recorded at the moment; recording may resume
    kEnded,  // nothing more will come
  };
  struct Heap {
    std::optional<uint32_t> device;  // none: host memory
    std::string heap;
    uint64_t live_bytes = 0, live_count = 0;
  };

  State state = State::kFollowing;
  std::string words;   // for display, if it is not being followed
  std::string path;    // of the recording; empty: not known yet
  int64_t now_ns = 0;  // on the recording's clock: everything up to now is in the file
  double events_per_second = 0;
  std::vector<Heap> heaps;
};

class LiveSource {
 public:
  virtual ~LiveSource() = default;
  // Returns the current state as soon as it is newer than the last one returned, or after
  // `patience`.
  virtual LiveNews Wait(std::chrono::milliseconds patience) = 0;
  // Ends the current Wait() and every later one.
  virtual void Stop() = 0;
};

// A process for a page to follow.
struct LiveProcess {
  std::string name;  // for display: "process 4711"
  std::unique_ptr<LiveSource> source;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_LIVE_LIVE_SOURCE_H_
