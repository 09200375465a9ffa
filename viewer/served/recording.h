// viewer/served/recording.h
//
// ServedRecording: one file that the page shows. A thread loads it while the page queries it:
//
//   waiting --Load()--> loading --curves known--> coarse --blocks, questions--> blocks
//                          |                  --categories, answers--> ready, the index is cached
//                          `--> failed: with the sentence that the reading commands would print
//
// With a cached index, curves and blocks are available at once, and questions after the file has
// been read.
//
// Curves come first, on all processors: with them the page shows the whole recording. From then on
// loading has a lower priority than the page, and blocks and questions are prepared in parallel, on
// as many threads as there are processors.
//
// Thread safety: Load() in one thread; everything else from any thread at any time. The examination
// is for one thread at a time and is accessed only through Ask() and Examine().

#ifndef GMT_VIEWER_SERVED_RECORDING_H_
#define GMT_VIEWER_SERVED_RECORDING_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "answers/answer.h"
#include "answers/recording.h"
#include "viewer/index/curves_so_far.h"
#include "viewer/index/view_index.h"
#include "viewer/questions/questions.h"

namespace gmt::viewer {

// How recordings are read and answers made. The defaults are those of the program; tests replace
// them.
struct Backend {
  std::function<absl::StatusOr<std::unique_ptr<answers::Recording>>(
      const std::string& path, const answers::LoadListener& listener)>
      load = [](const std::string& path, const answers::LoadListener& listener) {
        return answers::LoadRecording(path, listener);
      };
  std::function<absl::StatusOr<answers::Answer>(const std::string& verb,
                                                const answers::Recording& recording)>
      answer = answers::AnswerVerb;
  std::function<absl::StatusOr<answers::Answer>(const answers::Recording& base,
                                                const answers::Recording& changed)>
      diff = answers::AnswerDiff;
  // For the part of a recording that has been read while its program still runs.
  std::function<std::unique_ptr<answers::Recording>(const std::string& path, analysis::Trace trace,
                                                    format::Definitions definitions)>
      complete = answers::RecordingSoFar;
};

class ServedRecording {
 public:
  // `changed` is called after each change of progress or meta. `backend` must outlive this object.
  ServedRecording(uint32_t file, std::string path, const Backend& backend,
                  std::function<void()> changed);

  // Whether the index is cached for later (viewer/index/index_cache.h). kUnused: neither writes the
  // cache nor uses a cached index.
  enum class Keep { kIndex, kNothing, kUnused };
  void Load(Keep keep = Keep::kIndex);
  // Called if Load() is only called when the user opens the recording.
  void Wait();
  // Called instead of Load() for a recording that is not available; every query fails with `why`.
  void Refuse(std::string why);

  // Return FileProgress and FileMeta of protocol.ts.
  nlohmann::ordered_json progress() const;
  nlohmann::ordered_json meta() const;

  const std::string& path() const { return path_; }
  bool is_ready() const;

  // Returns null before anything is known.
  const ViewIndex* index() const { return index_.load(std::memory_order_acquire); }
  // Returns why there is no index, or only part of the data: kUnavailable while it loads.
  absl::Status WhyNot() const;

  // Calls `ask` with the recording locked. Fails if questions cannot be answered yet.
  absl::Status Ask(const std::function<absl::Status(Questions&)>& ask);
  // The same for two different recordings.
  static absl::Status AskBoth(ServedRecording& one, ServedRecording& other,
                              const std::function<absl::Status(Questions&, Questions&)>& ask);

  // The same, once categories are known, with all that is known of it.
  absl::Status Examine(
      const std::function<absl::Status(const answers::Recording&, Questions&)>& look);

  // Returns JSON of Answer; computed once.
  absl::StatusOr<std::string> AnswerOf(const std::string& verb);
  // Returns JSON of Compare.
  static absl::StatusOr<std::string> CompareOf(ServedRecording& base, ServedRecording& changed);

 private:
  enum class State { kLoading, kCoarse, kBlocks, kReady, kFailed, kWaiting };

  absl::Status LoadOrFail(Keep keep);
  bool UseCachedIndex();
  absl::Status ReadFile();
  void BuildCurves();
  void BuildRest(Keep keep);
  const analysis::Cycles& FindSteps();
  void BuildBlocks();
  void AddQuestions();
  void FindCategories(Keep keep);
  void CacheIndex() const;
  nlohmann::ordered_json LanesJson(const ViewIndex& index) const;
  nlohmann::ordered_json CoarseMeta() const;
  nlohmann::ordered_json FullMeta();
  // Returns the meta that is known before the file is read.
  nlohmann::ordered_json EmptyMeta() const;

  void TakeCurves(const analysis::Trace& so_far);
  void SetProgress(State state, std::string_view what, double fraction);
  void SetMeta(nlohmann::ordered_json meta);
  // REQUIRES: examination_mutex_ is held.
  absl::Status WhyNoQuestions() const;
  absl::Status WhyNoAnswers() const;

  const uint32_t file_;
  const uint64_t number_;  // unique among the recordings of this process
  const std::string path_;
  const Backend& backend_;
  const std::function<void()> changed_;

  std::unique_ptr<ViewIndex> owned_index_;
  std::atomic<const ViewIndex*> index_ = nullptr;
  bool index_was_cached_ = false;

  // Guards the examination and everything that uses it.
  mutable std::mutex examination_mutex_;
  std::unique_ptr<answers::Recording> recording_;
  std::once_flag finding_steps_;
  bool has_categories_ = false;
  std::unique_ptr<Questions> questions_;
  const analysis::AliveTexts* alive_texts_ = nullptr;  // questions_ owns them; any thread may read
  std::map<std::string, absl::StatusOr<std::string>> answers_;
  // The latest comparison with each file, which may be another recording by now.
  struct Compared {
    uint64_t with = 0;  // its number_
    absl::StatusOr<std::string> body;
  };
  std::map<uint32_t, Compared> compared_;

  // Guards the members below. Acquired last.
  mutable std::mutex progress_mutex_;
  State state_ = State::kLoading;
  std::string what_ = "opening the file", error_;
  double fraction_ = 0;
  CurvesSoFar curves_so_far_;  // of the part read so far
  std::chrono::steady_clock::time_point last_notified_;
  std::unique_ptr<nlohmann::ordered_json> meta_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVED_RECORDING_H_
