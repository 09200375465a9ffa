// Streams and events. Work is done when its stream reaches its end (timeline.h) and, with
// SIMCUDA_LAG, after as many later launches (simulator.h, "Finished").
#include <algorithm>

#include "tests/simcuda/timeline.h"

namespace {

using sim::Bits;
using sim::Call;
using sim::CallGroup;
using sim::Simulator;

bool IsDefault(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

bool Known(const Simulator& simulator, CUstream stream) {
  return IsDefault(stream) || simulator.streams.contains(stream);
}

// Runs `body` with an existing stream.
template <typename Body>
CUresult WithStream(const char* name, CallGroup group, CUstream stream, Body body) {
  return Call(name, group, [&](Simulator& simulator) {
    if (!Known(simulator, stream)) return CUDA_ERROR_INVALID_HANDLE;
    return body(simulator);
  });
}

template <typename Body>
CUresult WithEvent(const char* name, CallGroup group, CUevent event, Body body) {
  return Call(name, group, [&](Simulator& simulator) {
    if (!simulator.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
    return body(simulator);
  });
}

CUresult Create(const char* name, CUstream* stream, unsigned int flags, int priority) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext context = sim::CurrentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *stream = simulator.AddStream(context, flags, priority);
    simulator.LogStreams(name, {.stream = Bits(*stream), .device = context->device});
    return CUDA_SUCCESS;
  });
}

// Notifies a tool that an existing stream is about to be destroyed.
void AnnounceEnd(CUstream stream) {
  if (!sim::IsReported()) return;
  sim::Notice notice{.kind = sim::NoticeKind::kStreamDestroyStarting, .stream = stream};
  {
    Simulator& simulator = Simulator::Get();
    std::lock_guard<std::mutex> lock(simulator.mutex);
    if (!simulator.streams.contains(stream)) return;
    notice.context = stream->context;
    notice.device = stream->context->device;
  }
  sim::DeliverNow(notice);
}

// Returns the context of the stream, or the current one for a default stream.
CUcontext ContextOf(CUstream stream) {
  return IsDefault(stream) ? sim::CurrentContext() : stream->context;
}

CUresult RecordEvent(const char* name, CUevent event, CUstream stream) {
  return WithEvent(name, CallGroup::kOther, event, [&](Simulator& simulator) {
    if (!Known(simulator, stream)) return CUDA_ERROR_INVALID_HANDLE;
    event->recorded = true;
    event->position = simulator.launched;
    event->capture = IsDefault(stream) ? nullptr : stream->capture;
    // A capturing stream adds it to the graph; it takes no time.
    event->done_ns = event->capture != nullptr
                         ? sim::Now()
                         : sim::Queue(simulator, ContextOf(stream), stream, 0).end_ns;
    event->record = ++simulator.event_records;
    sim::Post({.kind = sim::NoticeKind::kEventRecorded,
               .context = ContextOf(stream),
               .device = event->context->device,
               .stream = stream,
               .event = event,
               .event_id = event->id,
               .event_record = event->record,
               .end_ns = event->done_ns});
    simulator.LogStreams(name, {.handle = Bits(event),
                                .stream = Bits(stream),
                                .device = event->context->device,
                                .done_ns = event->done_ns});
    return CUDA_SUCCESS;
  });
}

CUresult UseValue(const char* name, CUstream stream) {
  return WithStream(name, CallGroup::kLaunch, stream, [](Simulator&) { return CUDA_SUCCESS; });
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return Create(__func__, stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return Create(__func__, stream, flags, std::clamp(priority, -5, 0));
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  sim::ApiCall call(__func__);
  AnnounceEnd(stream);
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (simulator.streams.erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
    sim::Retire(stream);
    simulator.LogStreams(
        "cuStreamDestroy_v2",
        {.stream = Bits(stream), .device = stream->context->device, .done_ns = stream->ready_ns});
    delete stream;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return WithStream(__func__, CallGroup::kOther, stream, [&](Simulator& simulator) {
    uint64_t done = sim::DoneOnStream(simulator, sim::CurrentContext(), stream);
    bool finished = simulator.Finished(simulator.launched) && done <= sim::Now();
    CUresult result = finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    simulator.LogStreams("cuStreamQuery", {.stream = Bits(stream), .done_ns = done}, result);
    return result;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return WithStream(__func__, CallGroup::kSync, stream, [&](Simulator& simulator) {
    if (!IsDefault(stream) && stream->capture != nullptr) {
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUcontext context = ContextOf(stream);
    uint64_t done = sim::DoneOnStream(simulator, context, stream);
    sim::Span wait = sim::HostWait(simulator, done);
    simulator.Synchronize();
    sim::Post({.kind = sim::NoticeKind::kStreamSynchronized,
               .context = context,
               .stream = stream,
               .start_ns = wait.start_ns,
               .end_ns = wait.end_ns});
    simulator.LogStreams("cuStreamSynchronize", {.stream = Bits(stream), .done_ns = done});
    return CUDA_SUCCESS;
  });
}

// Waiting for an event of a capture makes the stream part of that capture.
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  return WithStream(__func__, CallGroup::kOther, stream, [&](Simulator& simulator) {
    if (!simulator.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture != nullptr && !IsDefault(stream) && stream->capture == nullptr) {
      stream->capture = event->capture;
      event->capture->streams.push_back(stream);
    }
    uint64_t now = sim::Now();
    if (event->capture == nullptr && event->recorded) {
      sim::HoldBack(simulator, ContextOf(stream), stream, event->done_ns);
    }
    simulator.LogStreams(
        "cuStreamWaitEvent",
        {.handle = Bits(event), .stream = Bits(stream), .done_ns = event->done_ns});
    sim::Post({.kind = sim::NoticeKind::kStreamWaitsEvent,
               .context = ContextOf(stream),
               .stream = stream,
               .event = event,
               .event_id = event->id,
               .event_record = event->record,
               .start_ns = now,
               .end_ns = now});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return WithStream(__func__, CallGroup::kOther, stream, [&](Simulator&) {
    *priority = IsDefault(stream) ? 0 : stream->priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  return WithStream(__func__, CallGroup::kOther, stream, [&](Simulator&) {
    *flags = IsDefault(stream) ? 0 : stream->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  *id = reinterpret_cast<unsigned long long>(stream);
  return Simulator::Ready();
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return WithStream(__func__, CallGroup::kOther, stream, [&](Simulator&) {
    *context = IsDefault(stream) ? sim::CurrentContext() : stream->context;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}

// Callbacks run at once, on the caller's thread and without the simulator's lock, because they may
// call CUDA.
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned int) {
  CUresult result =
      WithStream(__func__, CallGroup::kLaunch, stream, [](Simulator&) { return CUDA_SUCCESS; });
  if (result == CUDA_SUCCESS) callback(stream, CUDA_SUCCESS, data);
  return result;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  bool capturing = false;
  CUresult result = WithStream(__func__, CallGroup::kLaunch, stream, [&](Simulator& simulator) {
    capturing = !IsDefault(stream) && stream->capture != nullptr;
    if (capturing) simulator.Launch(stream, {.name = "host function"});
    return CUDA_SUCCESS;
  });
  if (result == CUDA_SUCCESS && !capturing) function(data);
  return result;
}

// Values that streams write and wait for are not stored: a wait ends at once.
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr, cuuint32_t, unsigned int) {
  return UseValue(__func__, stream);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr, cuuint64_t, unsigned int) {
  return UseValue(__func__, stream);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr, cuuint32_t, unsigned int) {
  return UseValue(__func__, stream);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr, cuuint64_t, unsigned int) {
  return UseValue(__func__, stream);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int, CUstreamBatchMemOpParams*,
                               unsigned int) {
  return UseValue(__func__, stream);
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext context = sim::CurrentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *event = new CUevent_st{.context = context, .flags = flags, .id = simulator.next_event_id++};
    simulator.events.insert(*event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (simulator.events.erase(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
    delete event;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return RecordEvent(__func__, event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int) {
  return RecordEvent(__func__, event, stream);
}

CUresult cuEventQuery(CUevent event) {
  return WithEvent(__func__, CallGroup::kOther, event, [&](Simulator& simulator) {
    bool finished =
        !event->recorded || (simulator.Finished(event->position) && event->done_ns <= sim::Now());
    CUresult result = finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    simulator.LogStreams("cuEventQuery", {.handle = Bits(event), .done_ns = event->done_ns},
                         result);
    return result;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return WithEvent(__func__, CallGroup::kSync, event, [&](Simulator& simulator) {
    // The event may have been destroyed during the wait.
    sim::Notice notice{.kind = sim::NoticeKind::kEventSynchronized,
                       .context = event->context,
                       .event = event,
                       .event_id = event->id,
                       .event_record = event->record};
    sim::Record line{.handle = Bits(event), .done_ns = event->done_ns};
    sim::Span wait = sim::HostWait(simulator, event->recorded ? event->done_ns : 0);
    simulator.Synchronize();
    notice.start_ns = wait.start_ns;
    notice.end_ns = wait.end_ns;
    sim::Post(notice);
    simulator.LogStreams("cuEventSynchronize", line);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return WithEvent(__func__, CallGroup::kOther, start, [&](Simulator& simulator) {
    if (!simulator.events.contains(end)) return CUDA_ERROR_INVALID_HANDLE;
    if (!start->recorded || !end->recorded ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    bool finished = simulator.Finished(std::max(start->position, end->position)) &&
                    std::max(start->done_ns, end->done_ns) <= sim::Now();
    if (!finished) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(static_cast<int64_t>(end->done_ns - start->done_ns)) / 1e6f;
    return CUDA_SUCCESS;
  });
}
