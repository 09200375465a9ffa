#include "viewer/server/served_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;

// How many files are loaded at a time: each needs memory while it is read.
constexpr size_t kLoadingThreads = 2;

}  // namespace

ServedFiles::ServedFiles(const Backend& backend, std::function<void()> changed)
    : backend_(backend), changed_(std::move(changed)) {}

ServedFiles::~ServedFiles() {
  const std::lock_guard lock(notify_mutex_);
  notifies_ = false;
}

void ServedFiles::Open(const std::vector<std::string>& paths, std::vector<LiveProcess> processes,
                       uint32_t window_rows, size_t loaded_at_start) {
  files_.resize(paths.size() + processes.size());
  std::vector<std::shared_ptr<ServedRecording>> finished(files_.size());
  for (uint32_t i = 0; i < files_.size(); ++i) {
    if (i < paths.size()) {
      finished[i] = std::make_shared<ServedRecording>(i, paths[i], backend_, [this] { Notify(); });
      files_[i].recording = finished[i];
    } else {
      files_[i].live = std::make_unique<LiveRecording>(
          i, std::move(processes[i - paths.size()]), backend_, [this] { Notify(); }, window_rows);
    }
  }
  ranks_ = std::make_unique<ServedRanks>(std::move(finished));
  loading_ = std::make_unique<WorkerPool>(std::min(files_.size(), kLoadingThreads));
  for (size_t i = 0; i < paths.size(); ++i) {
    File& file = files_[i];
    file.waits = i >= loaded_at_start;
    if (file.waits) {
      file.recording->Wait();
    } else {
      loading_->Add([one = file.recording] { one->Load(); });
    }
  }
  const std::lock_guard lock(notify_mutex_);
  notifies_ = true;
}

std::shared_ptr<ServedRecording> ServedFiles::Now(size_t number,
                                                  std::optional<uint64_t> window) const {
  const File& file = files_[number];
  return file.live != nullptr ? file.live->Current(window) : file.recording;
}

Json ServedFiles::meta() const {
  Json all = Json::array();
  for (const File& file : files_)
    all.push_back(file.live != nullptr ? file.live->meta() : file.recording->meta());
  return all;
}

Json ServedFiles::progress() const {
  Json all = Json::array();
  for (const File& file : files_)
    all.push_back(file.live != nullptr ? file.live->progress() : file.recording->progress());
  return all;
}

void ServedFiles::Load(size_t number) {
  File& file = files_[number];
  const std::lock_guard lock(load_mutex_);
  if (std::exchange(file.waits, false)) loading_->AddFirst([one = file.recording] { one->Load(); });
}

void ServedFiles::Notify() {
  const std::lock_guard lock(notify_mutex_);  // so that the files outlive the notification
  if (notifies_) changed_();
}

}  // namespace gmt::viewer
