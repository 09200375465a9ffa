#include "viewer/live/live_recording.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/printable.h"

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStateNames[] = {"following", "lost", "ended"};

Json HeapsJson(const LiveNews& news) {
  Json heaps = Json::array();
  for (const LiveNews::Heap& heap : news.heaps) {
    heaps.push_back({{"device", heap.device ? static_cast<int32_t>(*heap.device) : -1},
                     {"heap", heap.heap},
                     {"live_bytes", heap.live_bytes},
                     {"live_blocks", heap.live_count}});
  }
  return heaps;
}

}  // namespace

// The window being read. Reports the progress, and cancels the reading when the recording is
// destroyed.
class LiveRecording::Reading : public LiveWindow {
 public:
  Reading(LiveRecording* owner, const format::TailReader* tail)
      : LiveWindow(tail->definitions(), owner->window_rows_), owner_(*owner), tail_(*tail) {}

  absl::Status OnEvents(const format::EventBatch& batch) override {
    if (owner_.stop_) return absl::CancelledError();
    {
      const std::lock_guard lock(owner_.mutex_);
      owner_.share_read_ =
          static_cast<double>(tail_.bytes_taken()) / static_cast<double>(tail_.bytes());
    }
    return LiveWindow::OnEvents(batch);
  }
  absl::Status OnFacts(const Facts& facts) override {
    ++owner_.facts_read_;
    return LiveWindow::OnFacts(facts);
  }

 private:
  LiveRecording& owner_;
  const format::TailReader& tail_;
};

LiveRecording::LiveRecording(uint32_t file, LiveProcess process, const Backend& backend,
                             std::function<void()> changed, uint32_t window_rows)
    : file_(file),
      process_(std::move(process)),
      backend_(backend),
      changed_(std::move(changed)),
      window_rows_(window_rows),
      nothing_yet_(std::make_shared<ServedRecording>(file, process_.name, backend, [] {})),
      passed_(std::make_shared<ServedRecording>(file, process_.name, backend, [] {})) {
  passed_->Refuse(absl::StrCat("the query refers to a window of ", process_.name,
                               " that is no longer kept; a newer one is shown"));
  follower_ = std::thread([this] { Follow(); });
  builder_ = std::thread([this] { Build(); });
}

LiveRecording::~LiveRecording() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  process_.source->Stop();
  follower_.join();
  builder_.join();
}

// ---- Following ----------------------------------------------------------------------------------

void LiveRecording::Follow() {
  while (!stop_ && !IsOver()) {
    LiveNews news = process_.source->Wait(kTick);
    if (stop_) return;
    const std::string path = news.path;
    // Reads first, so that the current totals are not reported with blocks older than necessary.
    Read(path);
    Take(std::move(news));
    Order();
    changed_();
  }
}

void LiveRecording::Take(LiveNews news) {
  news.words = format::Printable(news.words);
  for (LiveNews::Heap& heap : news.heaps) heap.heap = format::Printable(heap.heap);
  const std::lock_guard lock(mutex_);
  news_ = std::move(news);
}

void LiveRecording::SetTrouble(const std::string& words) {
  const std::lock_guard lock(mutex_);
  trouble_ = format::Printable(words);
}

void LiveRecording::Read(const std::string& path) {
  if (path.empty()) return;
  if (path != path_) {
    BeginAnew();
    path_ = path;
  }
  if (tail_ == nullptr) {
    auto tail = format::TailReader::Open(path_);
    is_behind_ = tail.ok();
    if (!tail.ok()) return SetTrouble(std::string(tail.status().message()));
    tail_ = *std::move(tail);
    tail_->MakeStringsPrintable();
    window_ = std::make_unique<Reading>(this, tail_.get());
  }
  const absl::Status status = tail_->ReadMore(*window_);
  if (absl::IsCancelled(status)) return;
  SetTrouble(std::string(status.message()));
  // The next round reads the current file from its beginning.
  if (absl::IsDataLoss(status)) return BeginAnew();
  is_behind_ = false;
  const std::lock_guard lock(mutex_);
  events_read_ = window_->events() + facts_read_;
  names_read_ = tail_->names_taken();
}

// Window numbers keep increasing, so that the page notices that everything has changed.
void LiveRecording::BeginAnew() {
  if (window_ != nullptr) first_window_ += window_->number() + 1;
  window_.reset();
  tail_.reset();
  is_behind_ = true;
}

// Returns whether everything that will ever come is shown.
bool LiveRecording::IsOver() const {
  const std::lock_guard lock(mutex_);
  if (news_.state != LiveNews::State::kEnded || building_ || job_ != nullptr) return false;
  return window_ == nullptr ? !is_behind_ : shown_ != nullptr && !HasNews();
}

// ---- Generations --------------------------------------------------------------------------------

// REQUIRES: mutex_ is held; a generation is shown, and there is a window.
bool LiveRecording::HasNews() const {
  return shown_->events != events_read_ || shown_->names != names_read_ ||
         shown_->window != first_window_ + window_->number();
}

bool LiveRecording::IsDue() const {
  const std::lock_guard lock(mutex_);
  if (building_ || job_ != nullptr || window_ == nullptr) return false;
  if (shown_ == nullptr) return true;
  const bool is_news = HasNews();
  const bool is_last = news_.state == LiveNews::State::kEnded;
  const std::chrono::nanoseconds passed(news_.now_ns - shown_->as_of_ns);
  const bool is_time = passed >= std::max<std::chrono::nanoseconds>(kTimePasses, 20 * took_);
  return (is_news && is_last) || ((is_news || is_time) && Clock::now() >= next_build_);
}

void LiveRecording::Order() {
  if (!IsDue()) return;
  auto job = std::make_unique<Job>();
  job->begun = Clock::now();
  job->trace = window_->SoFar();
  job->definitions = tail_->definitions();
  job->path = format::Printable(path_);
  job->window = first_window_ + window_->number();
  job->first_window = first_window_;
  job->begin_ns = window_->begin_t_ns();
  job->dropped_steps = window_->dropped_steps();
  job->moves = window_->moves();
  const std::lock_guard lock(mutex_);
  job->as_of_ns = news_.now_ns;
  // As at the end of a recording: nothing has happened since the last event.
  job->trace.end_t_ns = std::max(job->trace.end_t_ns, news_.now_ns);
  job->events = events_read_;
  job->names = names_read_;
  job_ = std::move(job);
  wake_.notify_all();
}

void LiveRecording::Build() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || job_ != nullptr; });
    if (stop_) return;
    const std::unique_ptr<Job> job = std::exchange(job_, nullptr);
    building_ = true;
    lock.unlock();
    Make(std::move(*job));
    lock.lock();
    building_ = false;
  }
}

void LiveRecording::Make(Job job) {
  auto made = std::make_shared<Generation>();
  made->window = job.window;
  made->first_window = job.first_window;
  made->begin_ns = job.begin_ns;
  made->as_of_ns = job.as_of_ns;
  made->dropped_steps = job.dropped_steps;
  made->events = job.events;
  made->names = job.names;
  made->moves = job.moves;
  made->backend = backend_;
  const Clock::time_point begun = job.begun;
  made->backend.load = [this, &job](const std::string& path, const answers::LoadListener&) {
    return backend_.complete(path, std::move(job.trace), std::move(job.definitions));
  };
  made->recording = std::make_shared<ServedRecording>(file_, job.path, made->backend, [] {});
  made->recording->Load(ServedRecording::Keep::kUnused);
  made->backend.load = nullptr;
  Show(std::move(made), begun);
}

void LiveRecording::Show(std::shared_ptr<Generation> made, Clock::time_point begun) {
  std::shared_ptr<Generation> gone, replaced;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    made->number = shown_ == nullptr ? 1 : shown_->number + 1;
    replaced = std::exchange(shown_, std::move(made));
    if (replaced != nullptr && replaced->window != shown_->window) {
      gone = std::exchange(before_, replaced);
      before_until_ = now + kKept;
    } else if (now > before_until_) {
      gone = std::exchange(before_, nullptr);
    }
    took_ = now - begun;
    next_build_ = now + std::max<Clock::duration>(kPause, took_);
  }
  changed_();
}

// ---- Queries ------------------------------------------------------------------------------------

std::shared_ptr<ServedRecording> LiveRecording::Current(std::optional<uint64_t> window) const {
  const std::lock_guard lock(mutex_);
  if (shown_ == nullptr) return nothing_yet_;
  const bool is_before = window && before_ != nullptr && *window == before_->window;
  if (window && *window != shown_->window && !is_before) return passed_;
  // The generation lives as long as the returned pointer.
  const std::shared_ptr<Generation>& one = is_before ? before_ : shown_;
  return {one, one->recording.get()};
}

Json LiveRecording::progress() const {
  std::shared_ptr<ServedRecording> recording = Current(std::nullopt);
  Json progress = recording->progress();
  const std::lock_guard lock(mutex_);
  if (shown_ == nullptr) {
    progress["what"] = !trouble_.empty()
                           ? trouble_
                           : absl::StrCat("reading the events of ", process_.name, " so far");
    progress["fraction"] = share_read_;
  }
  // If the clocks of process and page disagree, the page's blocks are considered old.
  const bool is_all = shown_ != nullptr && shown_->events == events_read_ && !building_;
  const int64_t as_of = shown_ == nullptr ? 0 : is_all ? news_.now_ns : shown_->as_of_ns;
  progress["live"] = {{"state", kStateNames[static_cast<size_t>(news_.state)]},
                      {"words", news_.words.empty() ? trouble_ : news_.words},
                      {"name", process_.name},
                      {"generation", shown_ == nullptr ? 0 : shown_->number},
                      {"now_ns", news_.now_ns},
                      {"age_ns", std::max<int64_t>(0, news_.now_ns - as_of)},
                      {"events_per_second", news_.events_per_second},
                      {"heaps", HeapsJson(news_)}};
  return progress;
}

Json LiveRecording::meta() const {
  std::shared_ptr<Generation> shown;
  {
    const std::lock_guard lock(mutex_);
    shown = shown_;
  }
  Json meta = shown == nullptr ? nothing_yet_->meta() : shown->recording->meta();
  // The peak moves with the window, and colours should not.
  for (Json& lane : meta["lanes"]) lane["sites"] = Json::array();
  meta["live"] = {{"generation", shown == nullptr ? 0 : shown->number},
                  {"window", shown == nullptr ? 0 : shown->window},
                  {"first_window", shown == nullptr ? 0 : shown->first_window},
                  {"names", shown == nullptr ? 0 : shown->names},
                  {"begin_ns", shown == nullptr ? 0 : shown->begin_ns},
                  {"dropped_events", shown == nullptr ? 0 : shown->dropped_steps}};
  return meta;
}

analysis::RowId LiveRecording::RowIn(uint32_t to, uint32_t from, analysis::RowId row) const {
  const std::lock_guard lock(mutex_);
  if (shown_ == nullptr) return analysis::kNoRow;
  // A window counts from 0 within its file; rows of another file's windows do not exist here.
  const uint32_t first = shown_->first_window;
  if (from < first) return analysis::kNoRow;
  return MovedRow(shown_->moves, from - first, to - first, row);
}

}  // namespace gmt::viewer
