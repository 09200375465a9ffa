// collector/mailbox/mailbox.h
//
// Mailbox: connects the thread that drains a session (the drain) with the thread that serves
// clients (the server). The drain publishes copies of its state. Clients' requests wait until the
// drain has time for them.
//
//   clients <--> server --RequestCopy, Ask--> mailbox --TakeRequestedKinds, TakeRequests--> drain
//                       <--Take...-----------         <--Publish, Answer-----------------
//
// Invariants
//   D1  The drain never waits: each of its calls holds the lock only to move a few pointers, and
//       costs one relaxed load if no client requests anything.
//   D2  The drain makes a copy only after one was requested, and at most one per kMinDistanceNs.
//   D3  What waits for the drain is bounded: at most kMaxRequests requests. The names that a
//       recording defines (bounded by its stacks) are passed on and not kept.
//
// Thread safety: the drain's methods from one thread, the server's methods from another.

#ifndef GMT_COLLECTOR_MAILBOX_MAILBOX_H_
#define GMT_COLLECTOR_MAILBOX_MAILBOX_H_

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

// One site of the live set as counted by collector/events/tally.h, with the recording's stack id.
struct SiteRow {
  uint32_t heap = 0;  // index of Status.heaps
  uint32_t stack = 0;
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t allocations = 0, allocated_bytes = 0;
  bool other = false;
};

// The published state of one moment. Shared and immutable.
struct Copy {
  Status status;
  std::optional<std::vector<SiteRow>> sites;
  std::optional<gmt::LeakAnswer> leaks;
  bool written = false;  // the recording contains all of it, unless the status is `stalled`
};

// Names that the stacks of sites refer to, in the order of their definition.
struct NameChunk {
  std::optional<gmt::Definitions> definitions;
  std::optional<gmt::Symbols> symbols;
  bool is_new_recording = false;  // a new recording starts: earlier ids are invalid
};

class Mailbox {
 public:
  enum CopyKind : uint32_t { kStatus = 1, kSites = 2, kLeaks = 4, kWritten = 8 };

  static constexpr uint64_t kMinDistanceNs = 100'000'000;
  static constexpr size_t kMaxRequests = 64;
  static constexpr char kTooMany[] = "too many requests wait already; ask again";

  struct QueuedRequest {
    uint64_t client = 0;
    Request request;
  };
  struct QueuedReply {
    uint64_t client = 0;
    Reply reply;
  };

  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // ---- The drain
  // Returns what to publish now, as a set of CopyKind; usually 0. If not 0, it includes kStatus.
  uint32_t TakeRequestedKinds(uint64_t now_ns);
  void Publish(Copy copy);
  bool has_requests() const { return waiting_.load(std::memory_order_relaxed) != 0; }
  std::vector<QueuedRequest> TakeRequests();
  void Answer(uint64_t client, Reply reply);
  void AddNames(NameChunk chunk);
  // Accepts requests again, for the next recording.
  void Open();
  // Refuses all waiting and future requests.
  void Close(const std::string& why);

  // ---- The server
  // Readable when there is something to take.
  int wake_fd() const { return wake_fd_; }
  void RequestCopy(uint32_t kinds) {
    requested_kinds_.fetch_or(kinds | kStatus, std::memory_order_relaxed);
  }
  // Queues a request. Returns the error for the reply; empty if the request was queued.
  std::string Ask(uint64_t client, Request request);
  std::shared_ptr<const Copy> TakeCopy();  // null: no new one since the last call
  std::vector<QueuedReply> TakeAnswers();
  std::vector<NameChunk> TakeNames();

 private:
  void Wake();

  int wake_fd_ = -1;
  std::atomic<uint32_t> requested_kinds_{0};
  std::atomic<uint32_t> waiting_{0};  // requests
  uint64_t published_ns_ = 0;         // of the drain

  std::mutex mutex_;
  std::vector<QueuedRequest> requests_;
  std::vector<QueuedReply> answers_;
  std::vector<NameChunk> names_;
  std::shared_ptr<const Copy> copy_;
  std::string closed_;  // the reason for refusing requests; empty: they are accepted
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_MAILBOX_MAILBOX_H_
