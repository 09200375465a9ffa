// collector/testing/fake_target.h
//
// For tests: FakeTarget plays a traced process. It creates a session in a directory of its own and
// writes into it exactly as the hooks do (reserve, live table, commit). ReadBack() reads a
// recording.

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

// A clock that jumps: waiting takes no time, but calls `while_waiting`, in which a test can act.
class FakeClock : public Clock {
 public:
  uint64_t NowNs() override { return now_ns += step_ns; }
  void Wait(uint64_t ns) override;

  uint64_t now_ns = 0;
  uint64_t step_ns = 0;  // added by each NowNs(): simulates a very busy machine
  std::function<void()> while_waiting = [] {};
};

// The kind of memory that a call is about.
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

  // Record calls as the hooks do. Each returns its ticket.
  uint64_t Alloc(uint64_t address, uint64_t size, Layer layer = {}, uint32_t stack = 0);
  uint64_t Free(uint64_t address, Layer layer = {});
  uint64_t FreeDone(uint64_t address, uint16_t result, const session::LiveValue& freed);
  uint64_t FailAlloc(uint64_t size, uint16_t result);
  uint64_t Write(const session::Record& record);
  // Takes a ticket and never commits it, like a writer that died.
  void DieInTheMiddle() { ring_.Reserve(); }
  // Makes the session name another process, which has ended.
  void BeGone() { header().start_ticks += 1; }
  session::Header& header() { return const_cast<session::Header&>(session_.map.header()); }
  // Ends like the preloaded library's exit handler.
  void Exit(int code);

  uint32_t Code(const session::CodeObject& code);
  // `codes`: code ids of the interpreter frames in `frames`.
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

  uint64_t now_ns;  // of the next record; each record advances it by a microsecond

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
  // Returns what is live after the last event: size by address.
  std::map<uint64_t, uint64_t> LiveByEvents() const;
  static std::map<uint64_t, uint64_t> LiveOf(const gmt::Snapshot& snapshot);
  // Returns the allocation time of a row.
  static int64_t TimeOf(const gmt::Snapshot& snapshot, size_t row);
  const gmt::Snapshot* FindSnapshot(const std::string& name) const;
  size_t Count(gmt::Kind kind) const;
};

Recording ReadBack(const std::string& bytes);

// Returns the contents of a file.
std::string FileBytes(const std::string& path);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_TESTING_FAKE_TARGET_H_
