#include "analysis/trace/stream_log.h"

#include <algorithm>
#include <array>

#include "analysis/trace/recorded_time.h"

namespace gmt::analysis {
namespace {

using format::Event;

bool IsLinearDeviceMemory(Memory memory) {
  return memory == DEVICE || memory == MEMORY_UNSPECIFIED;
}

}  // namespace

StreamLog::Action StreamLog::ActionOf(uint32_t string) {
  static constexpr std::pair<std::string_view, Action> kWords[] = {
      {"create", Action::kCreate},
      {"destroy", Action::kDestroy},
      {"name", Action::kName},
      {"stream", Action::kStream},
      {"event", Action::kEvent},
      {"device", Action::kDevice},
      {"launch", Action::kLaunch},
      {"begin_capture", Action::kBeginCapture},
      {"end_capture", Action::kEndCapture}};
  if (string >= actions_.size()) actions_.resize(size_t{string} + 1);
  Action& action = actions_[string];
  if (action != Action::kUnread) return action;
  action = Action::kOther;
  for (const auto& [word, meaning] : kWords) {
    if (definitions_.string(string) == word) action = meaning;
  }
  return action;
}

// cudaMallocAsync, cuMemFreeAsync, cudaMallocFromPoolAsync and similar.
StreamLog::Api StreamLog::ApiOf(uint32_t string) {
  if (string >= apis_.size()) apis_.resize(size_t{string} + 1);
  Api& api = apis_[string];
  if (api == Api::kUnread) {
    const std::string_view name = definitions_.string(string);
    api = name.find("Async") != std::string_view::npos ? Api::kStreamOrdered : Api::kOther;
  }
  return api;
}

HostCall StreamLog::CallOf(const Event& event) {
  const uint64_t took = event.has(format::kHasDuration) ? event.duration_ns : 0;
  return {Before(event.t_ns, took), event.t_ns, event.thread, ContextOf(event)};
}

StreamInfo& StreamLog::InfoOf(uint64_t handle) {
  if (handle == StreamOrder::kLegacyHandle) handle = StreamOrder::kLegacy;
  const auto [known, is_new] = by_handle_.try_emplace(handle, streams_.size());
  if (is_new) streams_.emplace_back().handle = handle;
  return streams_[known->second];
}

void StreamLog::OnEvent(const Event& event) {
  switch (event.kind) {
    case ALLOC:
    case ALLOC_FAILED:
    case CREATE:
    case REGISTER:
    case FREE_DONE:
      if (event.memory != BLOCK && event.memory != REGION) OnDriverCall(event);
      return;
    case STREAM:
      return OnStream(event);
    case EVENT_RECORD:
      if (ActionOf(event.action) == Action::kDestroy || !event.has(format::kHasStream)) {
        return order_.OnEventGone(event.object);
      }
      ++InfoOf(event.stream).records;
      return order_.OnRecord(CallOf(event), event.stream, event.object);
    case EVENT_WAIT:
      if (!event.has(format::kHasStream) || Failed(event)) return;
      ++InfoOf(event.stream).waits;
      return order_.OnWait(CallOf(event), event.stream, event.object);
    case SYNC:
      return OnSync(event);
    case GRAPH_ACTION:
      return OnGraph(event);
    case COPY: {
      if (!event.has(format::kHasStream)) return;
      StreamInfo& stream = InfoOf(event.stream);
      ++stream.copies;
      stream.copied_bytes += event.value;
      stream.copy_ns += event.duration_ns;
      return;
    }
    case CONTEXT_CREATE:
      if (event.has(format::kHasObject)) context_handles_[event.object] = CallOf(event).context;
      return;
    case CONTEXT_RESET:
      return order_.OnContextGone(CallOf(event).context);
    case GAP:  // keep names: the handle probably still means the same stream
      inner_.clear();
      return order_.OnGap();
    default:
      return;
  }
}

void StreamLog::OnStream(const Event& event) {
  switch (ActionOf(event.action)) {
    case Action::kCreate: {
      by_handle_.erase(event.stream);
      StreamInfo& stream = InfoOf(event.stream);
      stream.created_ns = event.t_ns;
      if (event.has(format::kHasPriority)) stream.priority = event.priority;
      stream.blocking = (event.flags & format::kNonBlocking) == 0;
      return order_.OnStreamCreated(CallOf(event), event.stream, *stream.blocking);
    }
    case Action::kDestroy:
      InfoOf(event.stream).destroyed_ns = event.t_ns;
      by_handle_.erase(event.stream);
      return order_.OnStreamDestroyed(event.stream);
    case Action::kName:
      InfoOf(event.stream).name = event.name;
      return;
    default:
      return;
  }
}

void StreamLog::OnSync(const Event& event) {
  if (Failed(event)) return;
  HostCall call = CallOf(event);
  const bool inside = (event.flags & format::kInsideCall) != 0;
  if (inside) {
    Inner& inner = inner_[event.thread];
    if (inner.syncs++ == 0) inner.begin_ns = call.begin_ns;
    inner.sync_ns += event.duration_ns;
  } else {
    AddCost(event, HostCost::kSync, {});
  }
  switch (ActionOf(event.action)) {
    case Action::kStream: {
      if (!event.has(format::kHasStream)) return;
      StreamInfo& stream = InfoOf(event.stream);
      ++stream.syncs;
      stream.sync_ns += event.duration_ns;
      order_.OnStreamDone(call, event.stream);
      break;
    }
    case Action::kEvent:
      order_.OnEventDone(call, event.object);
      break;
    case Action::kDevice:
      // The call's context, which need not be this thread's.
      if (event.has(format::kHasObject) && !event.has(format::kHasContext)) {
        const auto known = context_handles_.find(event.object);
        call.context = known == context_handles_.end() ? ContextKeys::kUnknown : known->second;
      }
      order_.OnDeviceDone(call);
      break;
    default:
      return;
  }
  TakeAnswers();
}

void StreamLog::OnGraph(const Event& event) {
  if (!event.has(format::kHasStream)) return;
  switch (ActionOf(event.action)) {
    case Action::kLaunch:
      ++InfoOf(event.stream).launches;
      return order_.OnWork(CallOf(event), event.stream);
    case Action::kBeginCapture:
      return order_.OnCaptureBegun(CallOf(event), event.stream);
    case Action::kEndCapture:
      return order_.OnCaptureEnded(CallOf(event), event.stream);
    default:
      return;
  }
}

void StreamLog::OnDriverCall(const Event& event) {
  const HostCall call = CallOf(event);
  const bool frees = event.kind == FREE_DONE;
  Inner inner;
  if (const auto known = inner_.find(event.thread); known != inner_.end()) {
    if (known->second.begin_ns >= call.begin_ns) inner = known->second;
    inner_.erase(known);
  }
  if (event.has(format::kHasDuration)) {
    AddCost(event, frees ? HostCost::kFree : HostCost::kAllocation, inner);
  }
  if (Failed(event)) return;
  const bool in_order = ApiOf(event.api) == Api::kStreamOrdered;
  if (in_order && event.has(format::kHasStream)) order_.OnWork(call, event.stream);
  if (frees && !in_order && event.api != 0 && IsLinearDeviceMemory(event.memory)) {
    order_.OnDeviceDone(call);
    TakeAnswers();
  }
}

void StreamLog::AddCost(const Event& event, HostCost::Kind kind, Inner inner) {
  const auto [known, is_new] = cost_of_.try_emplace(
      {static_cast<uint8_t>(kind), event.api, event.stack}, static_cast<uint32_t>(costs_.size()));
  if (is_new) {
    HostCost& cost = costs_.emplace_back();
    cost.kind = kind;
    cost.api = event.api;
    cost.stack = event.stack;
  }
  HostCost& cost = costs_[known->second];
  ++cost.calls;
  cost.total_ns += event.duration_ns;
  cost.longest_ns = std::max(cost.longest_ns, event.duration_ns);
  cost.syncs += inner.syncs;
  cost.sync_ns += inner.sync_ns;
}

bool StreamLog::FreesInOrder(const Event& event) {
  if (event.memory == BLOCK) return true;
  return event.memory == POOL && (event.api == 0 || ApiOf(event.api) == Api::kStreamOrdered);
}

void StreamLog::OnFreed(const Event& event, uint64_t stream, RowId row) {
  order_.Ask({event.t_ns, event.t_ns, event.thread, ContextOf(event)}, stream, row);
  if (order_.has_answers()) TakeAnswers();
}

void StreamLog::TakeAnswers() {
  for (const StreamOrder::Answer& answer : order_.TakeAnswers()) answers_.push_back(answer);
}

void StreamLog::Apply(Trace& trace) {
  Rows& rows = trace.rows;
  for (const auto& [row, done_ns] : answers_) {
    // The question of an undone free is void; its answer may belong to a later free.
    if (rows.death[row] == kNever || done_ns < trace.TimeOf(rows.death[row])) continue;
    GrowTo(rows.done_column, size_t{row} + 1, kNotDone);
    if (rows.done_column[row] == kNotDone) rows.done_column[row] = done_ns;
  }
  trace.streams = std::move(streams_);
  trace.host_costs = std::move(costs_);
}

StreamLog StreamLog::BeginAgain() const {
  StreamLog next(definitions_);
  next.contexts_ = contexts_;
  next.streams_ = streams_;
  next.by_handle_ = by_handle_;
  next.context_handles_ = context_handles_;
  return next;
}

}  // namespace gmt::analysis
