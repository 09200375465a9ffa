// cli/progress.h
//
// Progress: one line on the terminal that says what is taking long. It appears after one second and
// is erased at the end. Nothing is written if stderr is not a terminal.
//
//   gpumemtrace: reading run.gmt: 3,407,872 events, 2 s
//
// Thread safety: Count() and Stage() from any thread.

#ifndef GMT_CLI_PROGRESS_H_
#define GMT_CLI_PROGRESS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace gmt::cli {

class Progress {
 public:
  // `stage` is, for example, "reading run.gmt". Writes to stderr if that is a terminal.
  explicit Progress(std::string stage);
  // For tests: writes to `out` at this interval.
  Progress(std::string stage, FILE* out, std::chrono::milliseconds interval);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Count(uint64_t events) { events_.fetch_add(events, std::memory_order_relaxed); }
  // Sets what is being done from now on, and resets the count to 0.
  void Stage(std::string stage);

 private:
  void Run();
  std::string Line(std::chrono::milliseconds elapsed) const;

  FILE* const out_;  // null: nothing is written
  const std::chrono::milliseconds interval_;
  std::atomic<uint64_t> events_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string stage_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_PROGRESS_H_
