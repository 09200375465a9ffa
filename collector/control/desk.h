// collector/control/desk.h
//
// Desk: where the thread that drains a session and the thread that talks to clients meet. What the
// drain tells is a copy; what clients want done is a request that the drain takes when it has time.
//
//   clients <--> [server's thread] --Want, Ask--> desk --Wishes, TakeRequests--> [drain]
//                                  <--Take------       <--Publish, Reply------
//
// Invariants
//   D1  The drain waits for nobody: each of its calls holds the lock for a few moves of pointers, and
//       costs one relaxed load where nobody wants anything.
//   D2  It makes a copy only after somebody has wanted one, and none twice within kMinDistance.
//   D3  What waits for the drain is bounded: kMaxRequests requests, and the names that a recording
//       defines (bounded by its stacks), which are handed over and not kept.
//
// Thread safety: methods of the drain from one thread, those of the server from another.

#ifndef GMT_COLLECTOR_CONTROL_DESK_H_
#define GMT_COLLECTOR_CONTROL_DESK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/control.pb.h"
#include "proto/gmt.pb.h"
#include "proto/leaks.pb.h"

namespace gmt::control {

// One site of the live set, as it is counted (collector/events/tally.h), with the recording's stack.
struct SiteRow {
  uint32_t heap = 0;  // index of Status.heaps
  uint32_t stack = 0;
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t allocations = 0, allocated_bytes = 0;
  bool other = false;
};

// What is published, of one moment. Shared: nobody changes it any more.
struct Copy {
  Status status;
  std::optional<std::vector<SiteRow>> sites;
  std::optional<gmt::LeakAnswer> leaks;
  bool written = false;  // all of it is in the recording, unless the status says `stalled`
};

// Names of what sites' stacks consist of, in the order in which they were defined.
struct NameChunk {
  std::optional<gmt::Definitions> definitions;
  std::optional<gmt::Symbols> symbols;
  bool begins_anew = false;  // another recording: earlier ids mean nothing
};

class Desk {
 public:
  enum Wish : uint32_t { kStatus = 1, kSites = 2, kLeaks = 4, kWritten = 8 };

  static constexpr uint64_t kMinDistanceNs = 100'000'000;
  static constexpr size_t kMaxRequests = 64;
  static constexpr char kTooMany[] = "too many requests wait already; ask again";

  struct Asked {
    uint64_t client = 0;
    Request request;
  };
  struct Answered {
    uint64_t client = 0;
    Reply reply;
  };

  Desk();
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // ---- The drain
  // What to publish now, as a set of Wish; 0 nearly always. kStatus is in it whenever something is.
  uint32_t Wishes(uint64_t now_ns);
  void Publish(Copy copy);
  bool has_requests() const { return waiting_.load(std::memory_order_relaxed) != 0; }
  std::vector<Asked> TakeRequests();
  void Answer(uint64_t client, Reply reply);
  void AddNames(NameChunk chunk);
  // The next recording takes requests again.
  void Open();
  // From now on every request is refused; those that wait are, too.
  void Close(const std::string& why);

  // ---- The server
  // Readable when there is something to take.
  int wake_fd() const { return wake_fd_; }
  void Want(uint32_t wishes) { wanted_.fetch_or(wishes | kStatus, std::memory_order_relaxed); }
  // The error for the reply; empty: it waits for the drain.
  std::string Ask(uint64_t client, Request request);
  std::shared_ptr<const Copy> TakeCopy();  // null: none since the last time
  std::vector<Answered> TakeAnswers();
  std::vector<NameChunk> TakeNames();

 private:
  void Wake();

  int wake_fd_ = -1;
  std::atomic<uint32_t> wanted_{0};
  std::atomic<uint32_t> waiting_{0};  // requests
  uint64_t published_ns_ = 0;         // of the drain

  std::mutex mutex_;
  std::vector<Asked> requests_;
  std::vector<Answered> answers_;
  std::vector<NameChunk> names_;
  std::shared_ptr<const Copy> copy_;
  std::string closed_;  // not empty: why
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_DESK_H_
