// analysis/trace/stream_log.h
//
// StreamLog: what a recording's events contain about streams, for a Trace: when the work pending at
// a free was done (by StreamOrder), which streams existed, and the host time spent in
// synchronisations and in calls of the driver's allocators.
//
//   free at t1 (row)   ->  Ask       ...      SYNC, a query, cudaFree       ->  Rows::DoneAt(row) = t2
//
// cudaFree of device memory is assumed to wait for the whole device. Synchronisations that CUPTI
// saw inside an allocation or a free count as that call's cost.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_TRACE_STREAM_LOG_H_
#define GMT_ANALYSIS_TRACE_STREAM_LOG_H_

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/context_keys.h"
#include "analysis/trace/stream_info.h"
#include "analysis/trace/stream_order.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "format/event.h"

namespace gmt::analysis {

class StreamLog {
 public:
  // REQUIRES: `definitions` outlives the log and contains what each event refers to.
  explicit StreamLog(const format::Definitions& definitions) : definitions_(definitions) {}

  // Call for every event, in order, before its effect on memory is applied.
  void OnEvent(const format::Event& event);
  // `event` freed `row` in the order of `stream`.
  void OnFreed(const format::Event& event, uint64_t stream, RowId row);
  // Whether the call frees in stream order.
  bool FreesInOrder(const format::Event& event);

  void Apply(Trace& trace);

  // Returns a log that knows the same streams but no row.
  StreamLog BeginAgain() const;

 private:
  enum class Action : uint8_t {
    kUnread,
    kOther,
    kCreate,
    kDestroy,
    kName,
    kStream,
    kEvent,
    kDevice,
    kLaunch,
    kBeginCapture,
    kEndCapture
  };
  enum class Api : uint8_t { kUnread, kOther, kStreamOrdered };
  struct Inner {  // synchronisations of a thread inside a call whose event has not arrived yet
    uint64_t syncs = 0, sync_ns = 0;
    int64_t begin_ns = 0;
  };

  Action ActionOf(uint32_t string);
  Api ApiOf(uint32_t string);
  HostCall CallOf(const format::Event& event);
  uint32_t ContextOf(const format::Event& event) {
    return contexts_.KeyOf(event, format::kHasContext, format::kHasDevice);
  }
  StreamInfo& InfoOf(uint64_t handle);
  void OnStream(const format::Event& event);
  void OnSync(const format::Event& event);
  void OnGraph(const format::Event& event);
  void OnDriverCall(const format::Event& event);
  void AddCost(const format::Event& event, HostCost::Kind kind, Inner inner);
  void TakeAnswers();

  const format::Definitions& definitions_;
  StreamOrder order_;
  ContextKeys contexts_;
  std::vector<Action> actions_;  // by string
  std::vector<Api> apis_;        // by string
  std::vector<StreamInfo> streams_;
  absl::flat_hash_map<uint64_t, uint32_t> by_handle_;
  absl::flat_hash_map<uint64_t, uint32_t> context_handles_;  // of contexts whose creation was seen
  std::vector<HostCost> costs_;
  absl::flat_hash_map<std::tuple<uint8_t, uint32_t, uint32_t>, uint32_t> cost_of_;
  absl::flat_hash_map<uint32_t, Inner> inner_;  // by thread
  std::vector<StreamOrder::Answer> answers_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_STREAM_LOG_H_
