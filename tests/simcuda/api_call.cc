#include "tests/simcuda/api_call.h"

#include <atomic>
#include <utility>
#include <vector>

#include "tests/simcuda/simulator.h"

namespace sim {
namespace {

std::atomic<NoticeFunction> attached{nullptr};
std::atomic<bool> calls_wanted{false};
std::atomic<uint32_t> next_correlation{1};

// The calls of this thread that are reported, outermost first. Empty while a notice is being
// delivered, so that calls made by the tool are separate calls.
struct Thread {
  ApiCall* call = nullptr;
  RuntimeScope* runtime = nullptr;
};
thread_local Thread thread;

// Notices that the call has yet to deliver. Never destroyed, because the driver may be called by
// destructors that run after those of this thread.
thread_local std::vector<Notice>* posted = nullptr;

void Deliver(const Notice& notice) {
  NoticeFunction function = attached.load(std::memory_order_acquire);
  if (function == nullptr) return;
  Thread inside = std::exchange(thread, Thread{});
  function(notice);
  thread = inside;
}

uint32_t ContextId(CUcontext context) { return context == nullptr ? 0 : context->id; }

// CUPTI's ids of the default streams, which every context has.
constexpr uint32_t kLegacyStreamId = 7;
constexpr uint32_t kPerThreadStreamId = 8;

// REQUIRES: the simulator's lock is held, or `stream` is a default stream.
uint32_t StreamId(CUstream stream, bool per_thread) {
  if (stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread)) {
    return kPerThreadStreamId;
  }
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return kLegacyStreamId;
  return Simulator::Get().streams.contains(stream) ? stream->id : 0;
}

void FillNumbers(Notice& notice) {
  if (notice.context == nullptr) notice.context = CurrentContext();
  notice.context_id = ContextId(notice.context);
  notice.stream_id = StreamId(notice.stream, false);
}

bool IsWanted(NoticeKind kind) {
  switch (kind) {
    case NoticeKind::kApiEnter:
    case NoticeKind::kApiExit:
    case NoticeKind::kStreamWaitsEvent:
    case NoticeKind::kEventRecorded:
    case NoticeKind::kWork:
    case NoticeKind::kMemory:
    case NoticeKind::kPool:
      return calls_wanted.load(std::memory_order_acquire);
    default:
      return true;
  }
}

uint32_t NextCorrelation() { return next_correlation.fetch_add(1, std::memory_order_relaxed); }

Notice Created(CUstream stream) {
  return {.kind = NoticeKind::kStreamCreated,
          .context = stream->context,
          .device = stream->context->device,
          .stream = stream,
          .stream_flags = stream->flags,
          .stream_priority = stream->priority};
}

}  // namespace

ApiCall::ApiCall(const char* name, const void* arguments) {
  if (attached.load(std::memory_order_acquire) == nullptr || thread.call != nullptr) return;
  open_ = true;
  name_ = name;
  arguments_ = arguments;
  correlation_ = NextCorrelation();
  caused_ = thread.runtime != nullptr ? thread.runtime->correlation : correlation_;
  if (IsWanted(NoticeKind::kApiEnter)) DeliverNow(Make(NoticeKind::kApiEnter));
  thread.call = this;
}

ApiCall::~ApiCall() {
  if (!open_) return;
  thread.call = nullptr;
  if (!IsWanted(NoticeKind::kApiExit)) return;
  Notice exit = Make(NoticeKind::kApiExit);
  exit.result = &result_;
  DeliverNow(exit);
}

Notice ApiCall::Make(NoticeKind kind) {
  return {.kind = kind,
          .correlation = correlation_,
          .inside_runtime = caused_ != correlation_,
          .name = name_,
          .arguments = arguments_,
          .scratch = scratch_};
}

CUresult ApiCall::Finish(CUresult result) {
  if (thread.call == nullptr) return result;
  thread.call->result_ = result;
  if (posted == nullptr || posted->empty()) return result;
  std::vector<Notice> notices;
  notices.swap(*posted);
  for (Notice& notice : notices) {
    notice.correlation = thread.call->caused_;
    Deliver(notice);
  }
  return result;
}

bool IsReported() { return thread.call != nullptr; }

void Post(Notice notice) {
  if (!IsReported() || !IsWanted(notice.kind)) return;
  FillNumbers(notice);
  if (posted == nullptr) posted = new std::vector<Notice>;
  posted->push_back(notice);
}

void DeliverNow(Notice notice) {
  if (attached.load(std::memory_order_acquire) == nullptr) return;
  if (notice.correlation == 0 && thread.call != nullptr) {
    notice.correlation = thread.call->caused_;
  }
  if (notice.stream == nullptr) {
    FillNumbers(notice);
  } else {
    std::lock_guard<std::mutex> lock(Simulator::Get().mutex);
    FillNumbers(notice);
  }
  Deliver(notice);
}

const ToolTable kToolTable = {
    .attach =
        [](NoticeFunction function) {
          NoticeFunction none_attached = nullptr;
          return attached.compare_exchange_strong(none_attached, function) ||
                 none_attached == function;
        },
    .detach = [](NoticeFunction function) { attached.compare_exchange_strong(function, nullptr); },
    .want_calls = [](bool wanted) { calls_wanted.store(wanted, std::memory_order_release); },
    .replay =
        [](NoticeFunction function) {
          std::vector<Notice> notices;
          if (Simulator::Ready() != CUDA_SUCCESS) return;
          {
            Simulator& simulator = Simulator::Get();
            std::lock_guard<std::mutex> lock(simulator.mutex);
            simulator.ForEachContext([&](CUcontext context) {
              notices.push_back({.kind = NoticeKind::kContextCreated,
                                 .context = context,
                                 .device = context->device});
            });
            for (CUstream stream : simulator.streams) notices.push_back(Created(stream));
            for (Notice& notice : notices) FillNumbers(notice);
          }
          for (const Notice& notice : notices) function(notice);
        },
    .now = [] { return Now(); },
    .context_id =
        [](CUcontext context) {
          if (context == nullptr) context = CurrentContext();
          if (Simulator::Ready() != CUDA_SUCCESS) return 0u;
          Simulator& simulator = Simulator::Get();
          std::lock_guard<std::mutex> lock(simulator.mutex);
          uint32_t id = 0;
          simulator.ForEachContext([&](CUcontext known) {
            if (known == context) id = known->id;
          });
          return id;
        },
    .stream_id =
        [](CUcontext context, CUstream stream, bool per_thread) {
          if (Simulator::Ready() != CUDA_SUCCESS) return 0u;
          Simulator& simulator = Simulator::Get();
          std::lock_guard<std::mutex> lock(simulator.mutex);
          bool special =
              stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
          if (!special && (!simulator.streams.contains(stream) ||
                           (context != nullptr && stream->context != context))) {
            return 0u;
          }
          return StreamId(stream, per_thread);
        },
    .hold_memory =
        [](CUcontext context, uint64_t bytes) {
          if (context == nullptr || Simulator::Ready() != CUDA_SUCCESS) return false;
          Simulator& simulator = Simulator::Get();
          std::lock_guard<std::mutex> lock(simulator.mutex);
          Budget& budget = simulator.device(context->device)->budget();
          budget.Return(context->tool_memory);
          bool room = budget.Take(bytes);
          context->tool_memory = room ? bytes : 0;
          return room;
        },
    .wants_calls =
        [] {
          return calls_wanted.load(std::memory_order_acquire) &&
                 attached.load(std::memory_order_acquire) != nullptr;
        },
    .runtime_enter =
        [](RuntimeScope* scope) {
          if (thread.runtime != nullptr) return;
          scope->open = true;
          scope->correlation = NextCorrelation();
          DeliverNow({.kind = NoticeKind::kApiEnter,
                      .correlation = scope->correlation,
                      .runtime = true,
                      .name = scope->name,
                      .arguments = scope->arguments,
                      .scratch = scope->scratch});
          thread.runtime = scope;
        },
    .runtime_finish =
        [](int result) {
          if (thread.runtime != nullptr) thread.runtime->result = result;
        },
    .runtime_exit =
        [](RuntimeScope* scope) {
          if (!scope->open) return;
          scope->open = false;
          thread.runtime = nullptr;
          DeliverNow({.kind = NoticeKind::kApiExit,
                      .correlation = scope->correlation,
                      .runtime = true,
                      .name = scope->name,
                      .arguments = scope->arguments,
                      .result = &scope->result,
                      .scratch = scope->scratch});
        },
};

}  // namespace sim
