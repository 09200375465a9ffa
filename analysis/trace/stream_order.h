// analysis/trace/stream_order.h
//
// StreamOrder: determines when a stream is known to have finished the work it had been given.
// Kernels need not be observed: a stream works in the order of its calls, so whatever was enqueued
// before some call is done when something enqueued later is done.
//
//   host            ask(A)   record e on A   wait for e on B   record f on B   ...   sync f
//   work on A  ----------o--------------o
//   work on B                            \----------------o-------------o-----------o
//                                                                              answer: done here
//
// What orders work (CUDA's rules, docs/streams.md)
//   O1  One stream: first in, first out.
//   O2  What is enqueued on a stream after a wait runs after everything that the event's last
//       record covered.
//   O3  The legacy default stream and the blocking streams of its context: each action on one runs
//       after all earlier work of the other. Streams whose creation was not seen count as
//       non-blocking.
//   O4  A successful synchronisation, or a query that returned "done", proves what was enqueued
//       before its beginning; this is known at its end. One of a device proves all streams of its
//       context.
//
// Answers may be late but never wrong. Calls of two threads that overlap prove nothing about each
// other. What a graph capture records orders no stream. After a gap, all knowledge about events and
// stream handles is discarded. An answer is the earliest time that the observed calls prove; the
// actual time is at or before it.
//
// Cost: amortised constant per question, linear in the streams that a wait or a synchronisation
// reaches.
// Memory: the open questions, plus one entry per event handle and per stream.
// Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_TRACE_STREAM_ORDER_H_
#define GMT_ANALYSIS_TRACE_STREAM_ORDER_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {

// A host call, as far as ordering is concerned. Calls arrive in the order of their ends.
struct HostCall {
  int64_t begin_ns = 0, end_ns = 0;
  uint32_t thread = 0;
  uint32_t context = 0;  // 0 if unknown; a default stream is then unknown too
};

class StreamOrder {
 public:
  static constexpr uint64_t kLegacy = 0, kLegacyHandle = 1, kPerThread = 2;

  struct Answer {
    uint32_t token = 0;
    int64_t done_ns = 0;
  };

  void OnStreamCreated(const HostCall& call, uint64_t stream, bool blocking);
  void OnStreamDestroyed(uint64_t stream);
  void OnRecord(const HostCall& call, uint64_t stream, uint64_t event);
  void OnWait(const HostCall& call, uint64_t stream, uint64_t event);
  // Any other enqueued work; it matters for O3.
  void OnWork(const HostCall& call, uint64_t stream);
  void OnCaptureBegun(const HostCall& call, uint64_t stream);
  void OnCaptureEnded(const HostCall& call, uint64_t stream);
  void OnEventGone(uint64_t event) { events_.erase(event); }
  void OnContextGone(uint32_t context);
  // Events are missing at this point.
  void OnGap();

  // O4.
  void OnEventDone(const HostCall& call, uint64_t event);
  void OnStreamDone(const HostCall& call, uint64_t stream);
  void OnDeviceDone(const HostCall& call);

  // Asks when `stream` is done with everything enqueued before the end of `call`. The answer is
  // delivered with `token` when it is known, which may be never.
  void Ask(const HostCall& call, uint64_t stream, uint32_t token) {
    const bool is_last =
        stream == kLegacy && call.context != 0 && call.context == last_legacy_context_;
    AskStream(is_last ? last_legacy_ : StreamOf(call, stream), call, token);
  }
  // Returns the answers since the previous call.
  std::vector<Answer> TakeAnswers() { return std::exchange(answers_, {}); }
  bool has_answers() const { return !answers_.empty(); }

 private:
  // A position in the order of the calls: by time, then by arrival.
  struct Moment {
    int64_t t_ns = INT64_MIN;
    uint64_t order = 0;

    bool operator==(const Moment&) const = default;
    std::strong_ordering operator<=>(const Moment& other) const {
      return t_ns != other.t_ns ? t_ns <=> other.t_ns : order <=> other.order;
    }
  };
  // Per other stream, the work that is done before anything enqueued next. Shared and immutable.
  struct Reach {
    uint32_t stream = 0;
    Moment until;
  };
  using Clock = std::shared_ptr<const std::vector<Reach>>;

  struct Question {
    Moment asked;
    uint32_t token = 0;
  };
  struct Stream {
    uint32_t context = 0;
    uint32_t capture = 0;  // 0 if none
    bool blocking = false, legacy = false;
    bool open = true;  // a call may still name it
    // `version` counts changes of `clock` beyond those by O3 alone. `taken_in` is the merged
    // version of the other side of O3 (of a blocking stream, the legacy one's); `given` is the
    // version of this stream that the legacy stream has merged.
    uint32_t version = 0, taken_in = 0, given = 0;
    Clock clock;
    int64_t changed_ns = INT64_MIN;   // when `clock` changed
    Moment done;                      // known to be done up to here
    int64_t done_ns = INT64_MIN;      // when that became known
    std::vector<Question> questions;  // ordered by moment; open from `next` on
    size_t next = 0;
  };
  struct Record {
    uint32_t stream = 0;
    uint32_t capture = 0;  // recorded into a graph, so on no stream
    Moment until;
    int64_t end_ns = 0;
    Clock clock;
  };
  struct Context {
    uint32_t legacy = 0;             // stream + 1; 0 if not used yet
    std::vector<uint32_t> blocking;  // streams in order, without the legacy one
    std::vector<uint32_t> streams;   // all that may still have open questions
  };

  Moment Begin(const HostCall& call) { return {call.begin_ns, ++order_}; }
  static constexpr uint32_t kNoStream = UINT32_MAX;

  void AskStream(uint32_t stream, const HostCall& call, uint32_t token);
  uint32_t StreamOf(const HostCall& call, uint64_t handle);
  uint32_t NewStream(uint32_t context, bool blocking, bool legacy);
  uint32_t LegacyOf(uint32_t context);
  void Adopt(uint32_t stream, uint32_t context);
  void Close(uint32_t stream);
  static Clock AsOf(const Stream& stream, int64_t t_ns);
  Clock Joined(const Clock& a, const Clock& b) const;
  Clock With(const Clock& clock, Reach reach) const;
  Clock Act(uint32_t stream, Moment begin, int64_t end_ns);
  Clock ImpliedByBlocking(uint32_t legacy, Moment begin);
  Clock ImpliedByLegacy(uint32_t stream, Moment begin);
  void Prove(uint32_t stream, Moment until, int64_t t_ns);
  void Prove(const Clock& clock, int64_t t_ns);
  void ForgetStreams(uint32_t context);

  uint64_t order_ = 0;
  uint32_t captures_ = 0;
  std::vector<Stream> streams_;
  absl::flat_hash_map<uint64_t, uint32_t> by_handle_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> per_thread_;  // (context, thread)
  absl::flat_hash_map<uint64_t, Record> events_;
  absl::flat_hash_map<uint32_t, Context> contexts_;
  // The last result of LegacyOf(), and its context: nearly all calls are of one context.
  uint32_t last_legacy_context_ = 0, last_legacy_ = 0;
  std::vector<Answer> answers_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_STREAM_ORDER_H_
