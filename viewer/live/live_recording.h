// viewer/live/live_recording.h
//
// LiveRecording: a recording in progress that a page follows. One thread reads what the collector
// writes into a window (viewer/live/live_window.h). Another thread repeatedly builds a
// ServedRecording of the window, called a *generation*, which answers queries until the next one is
// complete:
//
//   [follower] collector's news --> read the file's tail --> window --copy--> [builder] generation
//   17
//                       `--> current totals, at once                               `--> generation
//                                                                                  18
//
// Pace: building begins as soon as something has happened, but after the previous generation it
// pauses for as long as that took to build, and for at least kPause, so that the builder is busy at
// most half of the time. If nothing happens, a generation is built every kTimePasses, or less often
// if that would take more than a twentieth of a core. It advances the time axis, and gives the
// latest blocks a width.
//
// When the next window replaces a window, its last generation is kept for kKept, so that queries
// that use the old window's numbers can still be answered.
//
// Ownership: `backend` must outlive it. Thread safety: all functions from any thread.

#ifndef GMT_VIEWER_LIVE_LIVE_RECORDING_H_
#define GMT_VIEWER_LIVE_LIVE_RECORDING_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "format/tail_reader.h"
#include "viewer/live/live_source.h"
#include "viewer/live/live_window.h"
#include "viewer/served/recording.h"

namespace gmt::viewer {

class LiveRecording {
 public:
  static constexpr std::chrono::milliseconds kTick{250}, kPause{100}, kKept{5'000},
      kTimePasses{500};

  // `changed` is called when there is something new for the page.
  LiveRecording(uint32_t file, LiveProcess process, const Backend& backend,
                std::function<void()> changed, uint32_t window_rows = LiveWindow::kMaxRows);
  ~LiveRecording();
  LiveRecording(const LiveRecording&) = delete;
  LiveRecording& operator=(const LiveRecording&) = delete;

  // Returns what answers a query: the newest generation, or the last generation of `window`. If
  // that window is no longer kept, the result refuses each query with a message. Never null.
  std::shared_ptr<ServedRecording> Current(std::optional<uint64_t> window) const;

  // Return FileProgress and FileMeta of protocol.ts, with their `live` parts.
  nlohmann::ordered_json progress() const;
  nlohmann::ordered_json meta() const;

  // Translates a row of window `from` into a row of window `to`; kNoRow if it is gone.
  analysis::RowId RowIn(uint32_t to, uint32_t from, analysis::RowId row) const;

 private:
  using Clock = std::chrono::steady_clock;

  // The input of a generation.
  struct Job {
    analysis::Trace trace;
    format::Definitions definitions;
    std::string path;
    uint32_t window = 0, first_window = 0;
    int64_t begin_ns = 0, as_of_ns = 0;
    uint64_t dropped_steps = 0, events = 0, names = 0;
    RowMoves moves;
    Clock::time_point begun;
  };
  struct Generation {
    Backend backend;  // passes the job's data to `recording`
    std::shared_ptr<ServedRecording> recording;
    uint64_t number = 0;
    uint32_t window = 0, first_window = 0;  // first_window: of the same file
    int64_t begin_ns = 0, as_of_ns = 0;     // contains everything up to as_of_ns
    uint64_t dropped_steps = 0, events = 0, names = 0;
    RowMoves moves;
  };
  class Reading;

  void Follow();
  void Build();
  void Take(LiveNews news);
  void Read(const std::string& path);
  void BeginAnew();
  bool HasNews() const;
  bool IsDue() const;
  void Order();
  void Make(Job job);
  void Show(std::shared_ptr<Generation> made, Clock::time_point begun);
  bool IsOver() const;
  void SetTrouble(const std::string& words);

  const uint32_t file_;
  LiveProcess process_;
  const Backend& backend_;
  const std::function<void()> changed_;
  const uint32_t window_rows_;
  const std::shared_ptr<ServedRecording> nothing_yet_, passed_;

  // Used only in the follower thread.
  std::string path_;
  std::unique_ptr<format::TailReader> tail_;
  std::unique_ptr<Reading> window_;
  uint32_t first_window_ = 0;  // number of the first window of `tail_`
  uint64_t facts_read_ = 0;
  bool is_behind_ = false;  // restarted, and has not caught up yet

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  LiveNews news_;
  std::string trouble_;    // why the file cannot be read at the moment
  double share_read_ = 0;  // fraction of the file, before the first generation
  uint64_t events_read_ = 0, names_read_ = 0;
  std::shared_ptr<Generation> shown_, before_;
  Clock::time_point before_until_{};
  std::unique_ptr<Job> job_;
  bool building_ = false;
  Clock::time_point next_build_{};
  std::chrono::nanoseconds took_{};  // to build the last generation

  std::atomic<bool> stop_ = false;
  std::thread follower_, builder_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_LIVE_LIVE_RECORDING_H_
