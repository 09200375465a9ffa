#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "analysis/text.h"

namespace gmt::cli {
namespace {

constexpr std::chrono::milliseconds kInterval{1000};
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

Progress::Progress(std::string stage)
    : Progress(std::move(stage), isatty(STDERR_FILENO) == 1 ? stderr : nullptr, kInterval) {}

Progress::Progress(std::string stage, FILE* out, std::chrono::milliseconds interval)
    : out_(out), interval_(interval), stage_(std::move(stage)) {
  if (out_ != nullptr) thread_ = std::thread([this] { Run(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::Stage(std::string stage) {
  const std::lock_guard lock(mutex_);
  stage_ = std::move(stage);
  events_ = 0;
}

std::string Progress::Line(std::chrono::milliseconds elapsed) const {
  const uint64_t events = events_.load(std::memory_order_relaxed);
  const std::string count = events == 0 ? "" : Plural(events, "event") + ", ";
  return fmt::format("{}gpumemtrace: {}: {}{} s", kEraseLine, stage_, count,
                     elapsed.count() / 1000);
}

void Progress::Run() {
  const auto start = std::chrono::steady_clock::now();
  bool printed = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval_, [this] { return done_; })) {
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    std::fputs(Line(elapsed).c_str(), out_);
    std::fflush(out_);
    printed = true;
  }
  if (!printed) return;
  std::fputs(kEraseLine, out_);
  std::fflush(out_);
}

}  // namespace gmt::cli
