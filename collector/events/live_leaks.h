// collector/events/live_leaks.h
//
// LiveLeaks: searches for leaks while the program is recorded (analysis/leaks/leak_watcher.h). It
// receives the events of the recording, with the recording's ids. Answer() reports the current
// findings to clients; State() goes into the recording.
//
// Events wait until their ids are defined: a recording writes its definitions before each flush.
//
// Memory: that of a LeakWatcher, plus the recording's definitions and the events of one flush.
// Thread safety: one thread at a time, the draining thread. Cost: constant per event. Answer()
// looks at all sites; it returns the previous answer if a new one would take more than a fiftieth
// of the time.

#ifndef GMT_COLLECTOR_EVENTS_LIVE_LEAKS_H_
#define GMT_COLLECTOR_EVENTS_LIVE_LEAKS_H_

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/leaks/leak_watcher.h"
#include "format/definitions.h"
#include "format/event.h"
#include "proto/gmt.pb.h"
#include "proto/leaks.pb.h"

namespace gmt::collector {

class LiveLeaks {
 public:
  // `attached`: the program ran before the attach, without being recorded.
  LiveLeaks(uint64_t pid, bool attached) : watcher_(definitions_, pid, attached) {}

  void OnDefinitions(const gmt::Definitions& definitions);
  void OnSymbols(const gmt::Symbols& symbols);
  void OnEvent(const format::Event& event);
  void OnEvent(const format::Event& event, const gmt::Sample& sample);
  // Records that everything received so far is defined.
  void OnFlush();

  // As of the last flush.
  gmt::LeakAnswer Answer();
  gmt::LeakState State();

 private:
  using Clock = std::chrono::steady_clock;

  format::Definitions definitions_;
  analysis::LeakWatcher watcher_;
  std::vector<format::Event> waiting_;
  std::vector<gmt::Sample> samples_;  // of those
  int64_t now_ns_ = 0;                // of the events
  gmt::LeakAnswer answer_;
  Clock::time_point answer_again_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_LIVE_LEAKS_H_
