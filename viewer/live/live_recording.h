// viewer/live/live_recording.h
//
// LiveRecording: a recording that goes on while a page looks at it. A thread reads what its collector
// writes into a window (viewer/live/live_window.h); another one makes a ServedRecording of the window
// again and again, a *generation*, from which questions are answered until the next one stands:
//
//   [follows] collector's news --> read the file's tail --> window --copy--> [builds] generation 17
//                       `--> what is held now, at once                            `--> generation 18
//
// Pace: a generation begins as soon as something has happened, and no sooner after the last one than
// making that took, so that it works half of the time at most; kPause at least. Where only time passes, one is
// made every kTimePasses, or in a twentieth of a core: what was taken last has a width then, and the axis of
// time goes on.
//
// A window that was replaced by the next keeps its last generation for kKept, so that what a page asks
// with the old one's numbers is answered by them.
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
#include "viewer/server/recording.h"

namespace gmt::viewer {

class LiveRecording {
 public:
  static constexpr std::chrono::milliseconds kTick{250}, kPause{100}, kKept{5'000},
      kTimePasses{500};

  // `changed` is called when there is something to tell a page.
  LiveRecording(uint32_t file, LiveProcess process, const Backend& backend,
                std::function<void()> changed, uint32_t window_rows = LiveWindow::kMaxRows);
  ~LiveRecording();
  LiveRecording(const LiveRecording&) = delete;
  LiveRecording& operator=(const LiveRecording&) = delete;

  // Who answers a question: the newest generation, or the last one of the window that the asker
  // knows; of a window that is neither, one that says so to each question. Never null.
  std::shared_ptr<ServedRecording> Current(std::optional<uint64_t> window) const;

  // FileProgress and FileMeta, with what is live in them.
  nlohmann::ordered_json progress() const;
  nlohmann::ordered_json meta() const;

  // The row that a row of window `from` is in window `to`; kNoRow where it is gone.
  analysis::RowId RowIn(uint32_t to, uint32_t from, analysis::RowId row) const;

 private:
  using Clock = std::chrono::steady_clock;

  // What a generation is made of.
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
    Backend backend;  // that hands the job's data to `recording`
    std::shared_ptr<ServedRecording> recording;
    uint64_t number = 0;
    uint32_t window = 0, first_window = 0;  // the first of this file's
    int64_t begin_ns = 0, as_of_ns = 0;     // all until then is in it
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
  void SetTrouble(std::string words);

  const uint32_t file_;
  LiveProcess process_;
  const Backend& backend_;
  const std::function<void()> changed_;
  const uint32_t window_rows_;
  const std::shared_ptr<ServedRecording> nothing_yet_, passed_;

  // Of the following thread.
  std::string path_;
  std::unique_ptr<format::TailReader> tail_;
  std::unique_ptr<Reading> window_;
  uint32_t first_window_ = 0;  // number of the first window of `tail_`
  uint64_t facts_read_ = 0;
  bool is_behind_ = false;  // it begins anew, and is not where it was

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  LiveNews news_;
  std::string trouble_;    // why the file cannot be read for the moment
  double share_read_ = 0;  // of the file, before the first generation
  uint64_t events_read_ = 0, names_read_ = 0;
  std::shared_ptr<Generation> shown_, before_;
  Clock::time_point before_until_{};
  std::unique_ptr<Job> job_;
  bool building_ = false;
  Clock::time_point next_build_{};
  std::chrono::nanoseconds took_{};  // the last one

  std::atomic<bool> stop_ = false;
  std::thread follower_, builder_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_LIVE_LIVE_RECORDING_H_
