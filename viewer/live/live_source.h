// viewer/live/live_source.h
//
// LiveSource: who tells how a recorded process fares: where its recording is, what it holds now, and
// when it has ended. The blocks themselves come from the recording (viewer/live/live_recording.h).
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
    kLost,   // nobody records it for the moment; it may come back
    kEnded,  // nothing will come any more
  };
  struct Heap {
    std::optional<uint32_t> device;  // none: of the host
    std::string heap;
    uint64_t live_bytes = 0, live_count = 0;
  };

  State state = State::kFollowing;
  std::string words;   // for a person, where it is not being followed
  std::string path;    // of the recording; empty: not known yet
  int64_t now_ns = 0;  // of the recording's time: all that happened by then is in the file
  double events_per_second = 0;
  std::vector<Heap> heaps;
};

class LiveSource {
 public:
  virtual ~LiveSource() = default;
  // What is known, as soon as it is newer than what was told last, or after `patience`.
  virtual LiveNews Wait(std::chrono::milliseconds patience) = 0;
  // Ends a Wait() under way, and each one that comes.
  virtual void Stop() = 0;
};

// A process that a page is to follow.
struct LiveProcess {
  std::string name;  // for a person: "process 4711"
  std::unique_ptr<LiveSource> source;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_LIVE_LIVE_SOURCE_H_
