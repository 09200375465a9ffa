// analysis/trace/stream_log.h
//
// StreamLog: what the events of a recording tell of streams, for a Trace: when the work that was
// pending at a free was done (by StreamOrder), which streams there were, and the host time that
// synchronisations and calls of the driver's allocators took.
//
//   free at t1 (row)   ->  Ask       ...      SYNC, a query, cudaFree       ->  Rows::DoneAt(row) = t2
//
// cudaFree of device memory waits for the whole device; that is taken as known of it. Synchronisations
// that CUPTI saw inside an allocation or a free are that call's cost.
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
  // `definitions` must outlive the log and grow ahead of the events.
  explicit StreamLog(const format::Definitions& definitions) : definitions_(definitions) {}

  // Every event, in order, before what it does to memory.
  void OnEvent(const format::Event& event);
  // `row` was freed by `event`, in the order of `stream`.
  void OnFreed(const format::Event& event, uint64_t stream, RowId row);
  // Whether the call frees in the order of a stream.
  bool FreesInOrder(const format::Event& event);

  void Apply(Trace& trace);

  // A log that knows the streams that this one knows, and no row.
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
  struct Inner {  // synchronisations of a thread inside the call that is still to be told
    uint64_t syncs = 0, sync_ns = 0;
    int64_t begin_ns = 0;
  };

  Action ActionOf(uint32_t string);
  Api ApiOf(uint32_t string);
  HostCall CallOf(const format::Event& event);
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
  absl::flat_hash_map<uint64_t, uint32_t> context_handles_;  // of contexts that were made
  std::vector<HostCost> costs_;
  absl::flat_hash_map<std::tuple<uint8_t, uint32_t, uint32_t>, uint32_t> cost_of_;
  absl::flat_hash_map<uint32_t, Inner> inner_;  // by thread
  std::vector<StreamOrder::Answer> answers_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_STREAM_LOG_H_
