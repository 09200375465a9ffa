// viewer/testing/live_fixture.h
//
// For tests: a recording that the test writes while it is followed, with a simulated collector.

#ifndef GMT_VIEWER_TESTING_LIVE_FIXTURE_H_
#define GMT_VIEWER_TESTING_LIVE_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "format/definitions_builder.h"
#include "format/recording_writer.h"
#include "proto/gmt.pb.h"
#include "viewer/live/live_recording.h"

namespace gmt::viewer {

// How long a test waits for an expected event; never a measure of speed.
inline constexpr std::chrono::seconds kHang{120};

// A collector that reports what the test passes to Say().
class ScriptedSource : public LiveSource {
 public:
  LiveNews Wait(std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return stopped_ || is_new_; });
    is_new_ = false;
    return news_;
  }
  void Stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  void Say(LiveNews news) {
    const std::lock_guard lock(mutex_);
    news_ = std::move(news);
    is_new_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  LiveNews news_;
  bool is_new_ = false, stopped_ = false;
};

class LiveRecordingTest : public testing::Test {
 protected:
  LiveRecordingTest() {
    char directory[] = "/tmp/gmt-live-XXXXXX";
    directory_ = mkdtemp(directory);
  }
  ~LiveRecordingTest() override {
    live_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string Path() const { return directory_ + "/run.gmt"; }
  void Record() {
    Header header;
    header.set_tool_version("test");
    header.set_pid(4711);
    auto sink = format::FileSink(Path(), format::IfExists::kFail);
    ASSERT_TRUE(sink.ok()) << sink.status();
    auto writer = format::RecordingWriter::Create(*std::move(sink), header, {});
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  void Follow(uint32_t window_rows = LiveWindow::kMaxRows,
              std::unique_ptr<ScriptedSource> source = std::make_unique<ScriptedSource>()) {
    source_ = source.get();
    live_ = std::make_unique<LiveRecording>(
        0, LiveProcess{"process 4711", std::move(source)}, backend_, [] {}, window_rows);
    Say(LiveNews::State::kFollowing);
  }
  void Say(LiveNews::State state, const std::string& words = "") {
    LiveNews news;
    news.state = state;
    news.words = words;
    news.path = Path();
    news.now_ns = now_;
    news.heaps.push_back({0, heap_, held_, 1});
    source_->Say(news);
  }
  void Alloc(uint64_t address, uint64_t size) {
    format::Event event;
    event.kind = ALLOC;
    event.present = format::kHasTime | format::kHasAddress | format::kHasSize | format::kHasDevice;
    event.t_ns = now_ += 1000;
    event.heap = writer_->definitions().InternString(heap_);
    event.memory = DEVICE;
    event.address = address;
    event.size = size;
    held_ += size;
    ASSERT_TRUE(writer_->Add(event).ok());
  }
  void Free(uint64_t address) {
    format::Event event;
    event.kind = FREE;
    event.present = format::kHasTime | format::kHasAddress | format::kHasDevice;
    event.t_ns = now_ += 1000;
    event.heap = writer_->definitions().InternString(heap_);
    event.address = address;
    ASSERT_TRUE(writer_->Add(event).ok());
  }
  void Flush() {
    ASSERT_TRUE(writer_->Flush().ok());
    Say(LiveNews::State::kFollowing);
  }
  void WaitFor(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + kHang;
    while (!holds() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ASSERT_TRUE(holds()) << live_->progress() << "\n" << live_->meta();
  }
  void WaitForEvents(uint64_t events) {
    WaitFor([&] { return live_->meta()["events"] == events; });
  }

  std::string directory_;
  std::string heap_ = "driver";
  Backend backend_;
  std::unique_ptr<format::RecordingWriter> writer_;
  ScriptedSource* source_ = nullptr;
  std::unique_ptr<LiveRecording> live_;
  int64_t now_ = 0;
  uint64_t held_ = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_TESTING_LIVE_FIXTURE_H_
