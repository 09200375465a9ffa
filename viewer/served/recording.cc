#include "viewer/served/recording.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "viewer/index/index_cache.h"
#include "viewer/index/parallel_for.h"
#include "viewer/questions/questions_json.h"
#include "viewer/served/tile_slabs.h"

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;

// The fractions of the total work after reading and indexing: measured on recordings of a million
// events.
constexpr double kRead = 0.5, kIndexed = 0.8;

// The number of lanes shown for a file that is being read.
constexpr size_t kLanesSoFar = 4;

// How much lower the priority is of what is done while the page shows the recording, and of writing
// the index.
constexpr int kNiceBehindPage = 2, kNiceOfWriting = 19;

// The minimum interval between notifications within one state; changes of state are notified at
// once.
constexpr std::chrono::milliseconds kNotifyInterval{100};

double OfIndex(double fraction) {
  return kRead + (kIndexed - kRead) * std::clamp(fraction, 0.0, 1.0);
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

uint64_t NextNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// SoFar.
Json SoFarJson(double share, const CurvesSoFar& curves) {
  Json lanes = Json::array();
  for (const CurvesSoFar::Lane& lane : curves.Lanes(kLanesSoFar))
    lanes.push_back({{"label", lane.label}, {"bytes", lane.bytes}, {"most", lane.most}});
  return {{"share", share}, {"lanes", std::move(lanes)}};
}

std::string StageText(const answers::LoadProgress& progress) {
  if (progress.stage == answers::LoadProgress::kNamingFrames) return "naming frames";
  return absl::StrCat("reading events: ", Count(progress.events));
}

// Does the work in a thread of its own with a lower priority, which the threads that it starts
// inherit. If no thread can be created, does it in this one.
absl::Status AtLowerPriority(int nice, const std::function<absl::Status()>& work) {
  std::future<absl::Status> done;
  try {
    done = std::async(std::launch::async, [nice, &work] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);  // of this thread only
      return work();
    });
  } catch (const std::system_error&) {
    return work();
  }
  return done.get();
}

// Parses text that this program has written.
Json ParseJson(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json(nullptr) : json;
}

}  // namespace

ServedRecording::ServedRecording(uint32_t file, std::string path, const Backend& backend,
                                 std::function<void()> changed)
    : file_(file),
      number_(NextNumber()),
      path_(std::move(path)),
      backend_(backend),
      changed_(std::move(changed)) {
  meta_ = std::make_unique<nlohmann::ordered_json>(EmptyMeta());
}

void ServedRecording::Wait() { SetProgress(State::kWaiting, "not loaded yet", 0); }

void ServedRecording::Load(Keep keep) {
  SetProgress(State::kLoading, "opening the file", 0);
  absl::Status status;
  try {
    status = LoadOrFail(keep);
  } catch (const std::exception& error) {
    status = absl::InternalError(absl::StrCat(path_, ": ", error.what()));
  }
  if (!status.ok()) Refuse(std::string(status.message()));
}

void ServedRecording::Refuse(std::string why) {
  {
    const std::lock_guard lock(progress_mutex_);
    error_ = std::move(why);
  }
  SetProgress(State::kFailed, "", 0);
}

absl::Status ServedRecording::LoadOrFail(Keep keep) {
  index_was_cached_ = keep != Keep::kUnused && UseCachedIndex();
  if (!index_was_cached_) {
    if (absl::Status status = ReadFile(); !status.ok()) return status;
    BuildCurves();
  }
  const absl::Status status = AtLowerPriority(kNiceBehindPage, [this, keep] {
    const absl::Status read = index_was_cached_ ? ReadFile() : absl::OkStatus();
    if (read.ok()) BuildRest(keep);
    return read;
  });
  if (!status.ok()) return status;
  SetProgress(State::kReady, "", 1);
  if (keep == Keep::kIndex && !index_was_cached_) CacheIndex();
  return absl::OkStatus();
}

// Blocks need only the trace and the steps, everything else the examination.
void ServedRecording::BuildRest(Keep keep) {
  ParallelFor({[this, keep] {
                 FindSteps();
                 AddQuestions();
                 FindCategories(keep);
               },
               [this] {
                 if (!index_was_cached_) BuildBlocks();
                 AddQuestions();
                 SetMeta(FullMeta());
                 SetProgress(State::kBlocks, "categorizing memory", kIndexed);
               }},
              [](size_t) {});
  if (!index_was_cached_) {
    owned_index_->AddCategories(recording_->trace(), recording_->categories(), *alive_texts_);
  }
}

// The index of a large recording is a gigabyte, and the user is already working with the page, so
// it is written at the lowest priority. If it cannot be written, the index is built again the next
// time.
void ServedRecording::CacheIndex() const {
  AtLowerPriority(kNiceOfWriting, [this] {
    return SaveIndex(path_, *owned_index_, Dump(meta()));
  }).IgnoreError();
}

bool ServedRecording::UseCachedIndex() {
  CachedIndex kept = LoadIndex(path_);
  if (kept.index == nullptr) return false;
  Json meta = ParseJson(kept.meta);
  if (!meta.is_object() || !meta.contains("lanes")) return false;
  // The file may have another number, path and name by now.
  meta["file"] = file_;
  meta["path"] = path_;
  meta["name"] = FileName(path_);
  owned_index_ = std::move(kept.index);
  index_.store(owned_index_.get(), std::memory_order_release);
  SetMeta(std::move(meta));
  SetProgress(State::kCoarse, "reading events", 0);
  return true;
}

absl::Status ServedRecording::ReadFile() {
  const State state = index_was_cached_ ? State::kCoarse : State::kLoading;
  auto recording = backend_.load(path_, [&](const answers::LoadProgress& progress) {
    if (!index_was_cached_) TakeCurves(progress.so_far);
    SetProgress(state, StageText(progress), kRead * std::clamp(progress.share, 0.0, 1.0));
  });
  if (!recording.ok()) return recording.status();
  const std::lock_guard lock(examination_mutex_);
  recording_ = *std::move(recording);
  return absl::OkStatus();
}

void ServedRecording::BuildCurves() {
  owned_index_ = std::make_unique<ViewIndex>();
  index_.store(owned_index_.get(), std::memory_order_release);
  double reached = OfIndex(0);
  owned_index_->BuildCurves(recording_->trace(), [&](std::string_view what, double fraction) {
    SetProgress(State::kLoading, what, reached = OfIndex(fraction));
  });
  SetMeta(CoarseMeta());
  SetProgress(State::kCoarse, "sorting blocks", reached);
}

void ServedRecording::BuildBlocks() {
  owned_index_->BuildBlocks(
      recording_->examination(), [this]() -> const analysis::Cycles& { return FindSteps(); },
      [this](std::string_view what, double fraction) {
        SetProgress(State::kCoarse, what, OfIndex(fraction));
      });
}

// Called from two threads. Does not wait for a thread that has found the steps and examines
// something else by now.
const analysis::Cycles& ServedRecording::FindSteps() {
  std::call_once(finding_steps_, [this] {
    const std::lock_guard lock(examination_mutex_);
    recording_->examination().cycles();
  });
  return recording_->examination().cycles();
}

// Called from two threads; the first one does the work, and the other waits.
void ServedRecording::AddQuestions() {
  std::vector<Questions::Lane> lanes;
  for (const Lane& lane : owned_index_->lanes()) lanes.push_back({lane.device, lane.heap});
  const std::lock_guard lock(examination_mutex_);
  if (questions_ != nullptr) return;
  auto questions = std::make_unique<Questions>(recording_->examination(), std::move(lanes));
  questions->Prepare();
  questions_ = std::move(questions);
}

// A window of a recording in progress is replaced soon, and mostly before anyone asks for a range.
void ServedRecording::FindCategories(Keep keep) {
  const std::lock_guard lock(examination_mutex_);
  questions_->SetCategories(&recording_->categories());
  if (!index_was_cached_) alive_texts_ = &questions_->alive_texts();
  if (keep != Keep::kUnused) questions_->PrepareRanges();
  has_categories_ = true;
}

Json ServedRecording::LanesJson(const ViewIndex& index) const {
  Json lanes = Json::array();
  for (const Lane& lane : index.lanes()) {
    const std::optional<uint64_t> peak_reserved =
        index.PeakReserved(static_cast<uint32_t>(lanes.size()));
    Json series = Json::array();
    for (const Series one : lane.series) series.push_back(NameOf(one));
    lanes.push_back(
        {{"lane", lanes.size()},
         {"device", lane.device},
         {"heap", lane.heap_name},
         {"label", lane.label},
         {"blocks", lane.blocks},
         {"peak_bytes", lane.peak_bytes},
         {"peak_event", lane.peak_event},
         {"end_bytes", lane.end_bytes},
         {"peak_reserved_bytes", peak_reserved ? Json(*peak_reserved) : Json(nullptr)},
         {"capacity_bytes", lane.capacity_bytes ? Json(*lane.capacity_bytes) : Json(nullptr)},
         {"has_segments", lane.has_segments},
         {"sites", Json::array()},
         {"series", std::move(series)}});
  }
  return lanes;
}

Json ServedRecording::EmptyMeta() const {
  const Json none = Json::array();
  return {{"file", file_},
          {"name", FileName(path_)},
          {"path", path_},
          {"imported_from", ""},
          {"pid", 0},
          {"rank", nullptr},
          {"argv", none},
          {"start_unix_ns", "0"},
          {"end_ns", 0},
          {"events", 0},
          {"lanes", none},
          {"categories", none},
          {"streams", none},
          {"threads", none},
          {"roles", none},
          {"dtypes", none},
          {"steps",
           {{"source", ""},
            {"inferred", false},
            {"begin", none},
            {"end", none},
            {"begin_ns", none},
            {"end_ns", none}}},
          {"phases", none},
          {"ranges", none},
          {"marks", none},
          {"snapshots", none},
          {"ooms", none},
          {"retries", none},
          {"losses", none},
          {"lacks", none},
          {"omitted", nullptr}};
}

Json ServedRecording::CoarseMeta() const {
  const analysis::Trace& trace = recording_->trace();
  Json meta = EmptyMeta();
  meta["imported_from"] = trace.imported_from;
  meta["start_unix_ns"] = absl::StrCat(trace.start_unix_ns);
  meta["end_ns"] = owned_index_->end_ns();
  meta["events"] = owned_index_->events();
  meta["lanes"] = LanesJson(*owned_index_);
  meta["lacks"] = recording_->lacks();
  return meta;
}

Json ServedRecording::FullMeta() {
  FileNames names;
  names.file = file_;
  names.path = path_;
  names.streams = owned_index_->streams();
  names.threads = owned_index_->threads();
  names.dtypes = owned_index_->dtypes();
  names.lacks = recording_->lacks();
  Json lanes = LanesJson(*owned_index_);
  const std::lock_guard lock(examination_mutex_);
  for (uint32_t lane = 0; lane < lanes.size(); ++lane) {
    lanes[lane]["sites"] = questions_->LargestSites(lane, owned_index_->lanes()[lane].peak_event);
  }
  return FileMetaJson(recording_->examination(), names, lanes);
}

void ServedRecording::TakeCurves(const analysis::Trace& so_far) {
  const std::lock_guard lock(progress_mutex_);
  curves_so_far_.Take(so_far);
}

void ServedRecording::SetProgress(State state, std::string_view what, double fraction) {
  {
    const std::lock_guard lock(progress_mutex_);
    const auto now = std::chrono::steady_clock::now();
    const bool is_news = state != state_ || now - last_notified_ >= kNotifyInterval;
    state_ = state;
    what_ = std::string(what);
    fraction_ = fraction;
    if (!is_news) return;
    last_notified_ = now;
  }
  changed_();
}

void ServedRecording::SetMeta(Json meta) {
  const std::lock_guard lock(progress_mutex_);
  *meta_ = std::move(meta);
}

Json ServedRecording::progress() const {
  static constexpr const char* kNames[] = {"loading", "coarse", "blocks",
                                           "ready",   "failed", "waiting"};
  const std::lock_guard lock(progress_mutex_);
  Json progress = {{"file", file_},
                   {"state", kNames[static_cast<size_t>(state_)]},
                   {"what", what_},
                   {"fraction", fraction_},
                   {"error", error_}};
  if (state_ == State::kLoading)
    progress["so_far"] = SoFarJson(std::min(fraction_ / kRead, 1.0), curves_so_far_);
  return progress;
}

bool ServedRecording::is_ready() const {
  const std::lock_guard lock(progress_mutex_);
  return state_ == State::kReady;
}

Json ServedRecording::meta() const {
  const std::lock_guard lock(progress_mutex_);
  return *meta_;
}

absl::Status ServedRecording::WhyNot() const {
  const std::lock_guard lock(progress_mutex_);
  if (state_ == State::kFailed) return absl::FailedPreconditionError(error_);
  if (state_ == State::kWaiting) {
    return absl::UnavailableError(
        absl::StrCat(FileName(path_), " is not loaded before it is opened"));
  }
  return absl::UnavailableError(
      absl::StrCat(FileName(path_), " is being loaded: ", what_.empty() ? "nearly done" : what_));
}

absl::Status ServedRecording::WhyNoQuestions() const {
  return questions_ != nullptr ? absl::OkStatus() : WhyNot();
}

absl::Status ServedRecording::WhyNoAnswers() const {
  return has_categories_ ? absl::OkStatus() : WhyNot();
}

absl::Status ServedRecording::Ask(const std::function<absl::Status(Questions&)>& ask) {
  const std::lock_guard lock(examination_mutex_);
  if (absl::Status status = WhyNoQuestions(); !status.ok()) return status;
  return ask(*questions_);
}

absl::Status ServedRecording::AskBoth(
    ServedRecording& one, ServedRecording& other,
    const std::function<absl::Status(Questions&, Questions&)>& ask) {
  const std::scoped_lock lock(one.examination_mutex_, other.examination_mutex_);
  if (absl::Status status = one.WhyNoQuestions(); !status.ok()) return status;
  if (absl::Status status = other.WhyNoQuestions(); !status.ok()) return status;
  return ask(*one.questions_, *other.questions_);
}

absl::Status ServedRecording::Examine(
    const std::function<absl::Status(const answers::Recording&, Questions&)>& look) {
  const std::lock_guard lock(examination_mutex_);
  if (absl::Status status = WhyNoAnswers(); !status.ok()) return status;
  return look(*recording_, *questions_);
}

absl::StatusOr<std::string> ServedRecording::AnswerOf(const std::string& verb) {
  const std::lock_guard lock(examination_mutex_);
  if (absl::Status status = WhyNoAnswers(); !status.ok()) return status;
  if (const auto known = answers_.find(verb); known != answers_.end()) return known->second;
  const auto answer = backend_.answer(verb, *recording_);
  absl::StatusOr<std::string> body = std::string();
  if (!answer.ok()) {
    body = answer.status();
  } else {
    body = Dump(Json{{"name", verb},
                     {"headline", FirstLine(answer->text)},
                     {"text", answer->text},
                     {"json", ParseJson(answer->json)}});
  }
  return answers_.emplace(verb, std::move(body)).first->second;
}

absl::StatusOr<std::string> ServedRecording::CompareOf(ServedRecording& base,
                                                       ServedRecording& changed) {
  const std::scoped_lock lock(base.examination_mutex_, changed.examination_mutex_);
  if (absl::Status status = base.WhyNoAnswers(); !status.ok()) return status;
  if (absl::Status status = changed.WhyNoAnswers(); !status.ok()) return status;
  Compared& compared = base.compared_[changed.file_];
  if (compared.with == changed.number_) return compared.body;
  const auto diff = base.backend_.diff(*base.recording_, *changed.recording_);
  absl::StatusOr<std::string> body = std::string();
  if (!diff.ok()) {
    body = diff.status();
  } else {
    body =
        Dump(CompareJson(Align(base.recording_->examination(), changed.recording_->examination()),
                         FirstLine(diff->text), ParseJson(diff->json)));
  }
  compared = {changed.number_, std::move(body)};
  return compared.body;
}

}  // namespace gmt::viewer
