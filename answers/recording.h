// answers/recording.h
//
// Recording: an opened recording with everything that answers about it need: its trace, the names
// of its frames, the examination and the categories. The command line, the page and exports all
// answer from it.
//
// Ownership: a Recording owns its data; answers made of it refer to it and must not outlive it.
// Thread safety: one thread at a time for one recording.

#ifndef GMT_ANSWERS_RECORDING_H_
#define GMT_ANSWERS_RECORDING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/category_rules.h"
#include "analysis/examination/examination.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "format/messages_fwd.h"
#include "format/time_range.h"
#include "symbols/frame_rules.h"

namespace gmt::answers {

enum class TextForm {
  kPrintable,   // safe to print: control characters are escaped (format/printable.h)
  kAsRecorded,  // for JSON and exports, which keep the data
};

// How a recording is read: which frames are folded, what memory is for, in which form text is kept,
// and of which range the answers are, if not of everything.
struct ReadOptions {
  symbols::FrameRules frames = symbols::FrameRules::BuiltIn();
  analysis::CategoryRules categories = analysis::CategoryRules::BuiltIn();
  TextForm text = TextForm::kPrintable;
  // What is not needed for answers about this range may be missing from the trace. kTheEnd: answers
  // about the end; the sums of what has not been read are then in Trace::before. kThePeak: answers
  // about the allocated peak of `device`, or else of the one with the highest peak;
  // Recording::sums() are then of the whole recording.
  std::optional<format::TimeRange> range = std::nullopt;
  std::optional<int32_t> device = std::nullopt;
  // A recording with fewer events is read whole for kThePeak, which takes a second or two.
  uint64_t min_events_to_skip = 8'000'000;
};
inline constexpr format::TimeRange kTheEnd = {INT64_MAX, INT64_MAX};
inline constexpr format::TimeRange kThePeak = {INT64_MAX, INT64_MIN};

// What a recording is made of. `lacks` and `unnamed` are sentences for a person.
struct RecordingParts {
  std::string path;  // as the user named it
  analysis::Trace trace;
  format::Definitions definitions;
  std::vector<std::string> lacks;    // what the file does not hold: cut off, damaged, events lost
  std::vector<std::string> unnamed;  // modules whose frames have no names on this machine
  bool complete = true;  // the file has its end: it was not cut off, and is not still written
  std::shared_ptr<const Aggregates> sums;  // what Recording::sums() returns
};

class Recording {
 public:
  explicit Recording(RecordingParts parts, ReadOptions options = {});
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::string& path() const { return parts_.path; }
  const analysis::Trace& trace() const { return parts_.trace; }
  const format::Definitions& definitions() const { return parts_.definitions; }
  const std::vector<std::string>& lacks() const { return parts_.lacks; }
  const std::vector<std::string>& unnamed() const { return parts_.unnamed; }
  bool complete() const { return parts_.complete; }
  // The sums of the whole recording, if only the part around the peak has been read; or null.
  const Aggregates* sums() const { return parts_.sums.get(); }
  // The devices whose peaks may be outside of what has been read.
  const std::set<int32_t>& peaks_elsewhere() const { return peaks_elsewhere_; }
  void set_peaks_elsewhere(std::set<int32_t> devices) { peaks_elsewhere_ = std::move(devices); }
  // lacks() without the sentences about memory from before an attach, for an answer that has rows
  // for it.
  std::vector<std::string> LacksWithoutBeforeAttach() const;

  const analysis::Examination& examination() const { return examination_; }
  // Computed at the first call.
  const analysis::Categories& categories() const;

  // `status` with the path of the recording in front of its message.
  absl::Status InFile(const absl::Status& status) const;

 private:
  const RecordingParts parts_;
  const ReadOptions options_;
  const analysis::Examination examination_;
  mutable std::unique_ptr<analysis::Categories> categories_;
  std::set<int32_t> peaks_elsewhere_;
};

// How far loading has come. `so_far` holds the rows and steps that have been read; it is always the
// same trace.
struct LoadProgress {
  enum Stage { kReadingEvents, kNamingFrames } stage;
  uint64_t events;
  double share;  // of the file that has been read, 0 to 1
  const analysis::Trace& so_far;
};
// Called from time to time, from the loading thread.
using LoadListener = std::function<void(const LoadProgress&)>;

// Reads a .gmt file or a foreign format (interop/open_input.h), and names every frame that can be
// named on this machine. Fails with a message that names the file and, if there is one, the command
// that mends it.
absl::StatusOr<std::unique_ptr<Recording>> LoadRecording(const std::string& path,
                                                         const LoadListener& listener,
                                                         ReadOptions options = {});

// The same for the part of a recording that has been read while the program still runs. Frames have
// the names that the collector has found so far.
std::unique_ptr<Recording> RecordingSoFar(const std::string& path, analysis::Trace trace,
                                          format::Definitions definitions);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RECORDING_H_
