// viewer/server/served_files.h
//
// ServedFiles: the recordings of a server, by number: finished ones, which threads load, a few at a
// time, and after them the recordings in progress.
//
// Thread safety: after Open(), any thread at any time.

#ifndef GMT_VIEWER_SERVER_SERVED_FILES_H_
#define GMT_VIEWER_SERVER_SERVED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "viewer/live/live_recording.h"
#include "viewer/served/recording.h"
#include "viewer/served/served_ranks.h"
#include "viewer/server/worker_pool.h"

namespace gmt::viewer {

class ServedFiles {
 public:
  // `changed` is called in any thread if the progress of a file has changed, but neither before
  // Open() has returned nor after the destructor was called. REQUIRES: `backend` outlives it.
  ServedFiles(const Backend& backend, std::function<void()> changed);
  // Waits for files that are being loaded.
  ~ServedFiles();
  ServedFiles(const ServedFiles&) = delete;
  ServedFiles& operator=(const ServedFiles&) = delete;

  // Begins to load the first `loaded_at_start` of the files, and to follow the processes. REQUIRES:
  // is called once.
  void Open(const std::vector<std::string>& paths, std::vector<LiveProcess> processes,
            uint32_t window_rows, size_t loaded_at_start);

  size_t count() const { return files_.size(); }
  // Returns what answers queries about a file. `window`: for a recording in progress, the window
  // whose rows and events the page refers to. Never null.
  std::shared_ptr<ServedRecording> Now(size_t number, std::optional<uint64_t> window = {}) const;
  // Null unless the recording is in progress.
  const LiveRecording* live(size_t number) const { return files_[number].live.get(); }

  // Return an array with FileMeta or FileProgress (protocol.ts) of each file.
  nlohmann::ordered_json meta() const;
  nlohmann::ordered_json progress() const;
  // Returns JSON of Ranks (protocol.ts).
  std::string Ranks() { return ranks_->Answer(); }

  // Loads a file next if it is not loaded at the start.
  void Load(size_t number);

 private:
  struct File {
    std::shared_ptr<ServedRecording> recording;  // null if it is in progress
    std::unique_ptr<LiveRecording> live;
    bool waits = false;  // for Load(); guarded by load_mutex_
  };
  void Notify();

  const Backend& backend_;
  const std::function<void()> changed_;
  std::mutex notify_mutex_;
  bool notifies_ = false;  // guarded by notify_mutex_
  std::vector<File> files_;
  std::unique_ptr<ServedRanks> ranks_;
  std::mutex load_mutex_;
  std::unique_ptr<WorkerPool> loading_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_SERVED_FILES_H_
