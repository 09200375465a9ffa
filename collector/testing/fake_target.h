// collector/testing/fake_target.h
//
// For tests: FakeTarget is a traced process without the process: it creates a session in a
// directory of its own and writes into it exactly as the hooks do (reserve, live table, commit).
// ReadBack() is what a reader makes of the recording.

#ifndef GMT_COLLECTOR_TESTING_FAKE_TARGET_H_
#define GMT_COLLECTOR_TESTING_FAKE_TARGET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collector/clock.h"
#include "format/recording_reader.h"
#include "proto/gmt.pb.h"
#include "session/session_file.h"

namespace gmt::collector {

// A clock that jumps: waiting takes no time, and calls `while_waiting`, in which a test lets the
// world go on.
class FakeClock : public Clock {
 public:
  uint64_t NowNs() override { return now_ns += step_ns; }
  void Wait(uint64_t ns) override;

  uint64_t now_ns = 0;
  uint64_t step_ns = 0;  // a machine so busy that this long passes between two looks
  std::function<void()> while_waiting = [] {};
};

// What kind of memory a call is about.
struct Layer {
  session::Space space = session::Space::kDevice;
  session::Memory memory = session::Memory::kDevice;
};

class FakeTarget {
 public:
  static constexpr uint16_t kMalloc = 1, kFree = 2;  // API numbers

  static session::SessionSizes SmallSizes();

  explicit FakeTarget(const session::SessionSizes& sizes = SmallSizes(),
                      const std::string& options = "", const std::string& output = "",
                      const std::string& collector = "");
  ~FakeTarget();
  FakeTarget(const FakeTarget&) = delete;
  FakeTarget& operator=(const FakeTarget&) = delete;

  // Calls as the hooks record them. Each returns its ticket.
  uint64_t Alloc(uint64_t address, uint64_t size, Layer layer = {}, uint32_t stack = 0);
  uint64_t Free(uint64_t address, Layer layer = {});
  uint64_t FreeDone(uint64_t address, uint16_t result, const session::LiveValue& freed);
  uint64_t FailAlloc(uint64_t size, uint16_t result);
  uint64_t Write(const session::Record& record);
  // Takes a ticket and never commits it: the writer died.
  void DieInTheMiddle() { ring_.Reserve(); }
  // From now on the session says that its process is another one, which has ended.
  void BeGone() { header().start_ticks += 1; }
  session::Header& header() { return const_cast<session::Header&>(session_.map.header()); }
  // Ends as the shim's exit handler does.
  void Exit(int code);

  uint32_t Code(const session::CodeObject& code);
  // `codes`: of the interpreter frames among the words.
  uint32_t Stack(const std::vector<uint64_t>& frames, uint16_t flags = 0,
                 const std::vector<uint32_t>& codes = {});
  uint32_t Text(const std::string& text) { return session_.map.texts().Intern(text); }
  void Map(const std::string& path, uint64_t start, uint64_t end);

  session::Control& control() { return session_.map.control(); }
  const session::SessionMap& map() const { return session_.map; }
  int fd() const { return session_.fd; }
  std::string path() const { return session_.path; }
  const std::string& directory() const { return directory_; }
  uint64_t start_ns() const { return session_.map.header().monotonic_ns; }

  uint64_t now_ns;  // of the next record; each takes a microsecond

 private:
  session::Record NewRecord(session::Kind kind, Layer layer, uint16_t api, uint64_t value);

  std::string directory_;
  session::CreatedSession session_;
  session::RingWriter ring_;
  session::LiveTable live_;
};

struct Recording {
  absl::Status status;
  bool complete = false;
  gmt::Header header;
  gmt::Facts facts;  // merged as a reader does
  std::vector<format::Event> events;
  std::vector<gmt::Gap> gaps;
  std::vector<gmt::Snapshot> snapshots;
  std::vector<gmt::Aggregates> aggregates;
  std::unique_ptr<format::RecordingReader> reader;

  std::string String(uint32_t id) const { return std::string(reader->definitions().string(id)); }
  // What is live after the last event, by address: sizes of device memory.
  std::map<uint64_t, uint64_t> LiveByEvents() const;
  static std::map<uint64_t, uint64_t> LiveOf(const gmt::Snapshot& snapshot);
  // When a row of it was allocated.
  static int64_t TimeOf(const gmt::Snapshot& snapshot, size_t row);
  const gmt::Snapshot* FindSnapshot(const std::string& name) const;
  size_t Count(gmt::Kind kind) const;
};

Recording ReadBack(const std::string& bytes);

// The bytes of a file.
std::string FileBytes(const std::string& path);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_TESTING_FAKE_TARGET_H_
