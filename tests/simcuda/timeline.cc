#include "tests/simcuda/timeline.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "tests/simcuda/clock.h"

namespace sim {
namespace {

enum class Line { kLegacy, kPerThread, kBlocking, kNonBlocking };

bool Known(const Simulator& simulator, CUstream stream) {
  return simulator.streams.contains(stream);
}

Line LineOf(const Simulator& simulator, CUstream stream) {
  if (stream == CU_STREAM_PER_THREAD) return Line::kPerThread;
  if (!Known(simulator, stream)) return Line::kLegacy;
  return (stream->flags & CU_STREAM_NON_BLOCKING) != 0 ? Line::kNonBlocking : Line::kBlocking;
}

// Returns when the stream becomes idle. REQUIRES: `context` is not null.
uint64_t& Ready(const Simulator& simulator, CUcontext context, CUstream stream) {
  switch (LineOf(simulator, stream)) {
    case Line::kLegacy:
      return context->times.legacy;
    case Line::kPerThread:
      return context->times.per_thread[syscall(SYS_gettid)];
    default:
      return stream->ready_ns;
  }
}

// Returns when the streams become idle that the legacy default stream waits for.
uint64_t BlockingReady(const Simulator& simulator, CUcontext context) {
  uint64_t ready = context->times.retired_blocking;
  for (CUstream stream : simulator.streams) {
    bool waits = stream->context == context && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
    if (waits) ready = std::max(ready, stream->ready_ns);
  }
  for (auto& [thread, time] : context->times.per_thread) ready = std::max(ready, time);
  return ready;
}

CUcontext ContextOf(const Simulator& simulator, CUcontext context, CUstream stream) {
  return Known(simulator, stream) ? stream->context : context;
}

// Returns the earliest time at which new work on the stream can begin.
uint64_t Earliest(Simulator& simulator, CUcontext context, CUstream stream) {
  uint64_t earliest = std::max(Now(), Ready(simulator, context, stream));
  switch (LineOf(simulator, stream)) {
    case Line::kLegacy:
      return std::max(earliest, BlockingReady(simulator, context));
    case Line::kNonBlocking:
      return earliest;
    default:
      return std::max(earliest, context->times.legacy);
  }
}

}  // namespace

uint64_t DurationOf(const Simulator& simulator, const Notice& work) {
  if (work.work == WorkKind::kKernel) return simulator.settings.kernel_time_ns;
  uint64_t bandwidth = simulator.settings.bandwidth;
  if (bandwidth == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(work.size) * 1e9 /
                               static_cast<double>(bandwidth));
}

Span Queue(Simulator& simulator, CUcontext context, CUstream stream, uint64_t duration) {
  context = ContextOf(simulator, context, stream);
  if (!simulator.timed || context == nullptr) {
    uint64_t now = Now();
    return {now, now};
  }
  uint64_t start = Earliest(simulator, context, stream);
  Ready(simulator, context, stream) = start + duration;
  return {start, start + duration};
}

void HoldBack(Simulator& simulator, CUcontext context, CUstream stream, uint64_t time) {
  context = ContextOf(simulator, context, stream);
  if (!simulator.timed || context == nullptr) return;
  uint64_t earliest = Earliest(simulator, context, stream);
  Ready(simulator, context, stream) = std::max(earliest, time);
}

uint64_t DoneOnStream(Simulator& simulator, CUcontext context, CUstream stream) {
  context = ContextOf(simulator, context, stream);
  if (!simulator.timed || context == nullptr) return Now();
  return Earliest(simulator, context, stream);
}

uint64_t DoneInContext(Simulator& simulator, CUcontext context) {
  uint64_t done = Now();
  if (!simulator.timed || context == nullptr) return done;
  done = std::max({done, context->times.legacy, context->times.retired});
  for (CUstream stream : simulator.streams) {
    if (stream->context == context) done = std::max(done, stream->ready_ns);
  }
  for (auto& [thread, time] : context->times.per_thread) done = std::max(done, time);
  return done;
}

uint64_t DoneOnDevice(Simulator& simulator, int device) {
  uint64_t done = Now();
  if (!simulator.timed) return done;
  simulator.ForEachContext([&](CUcontext context) {
    if (context->device == device) done = std::max(done, DoneInContext(simulator, context));
  });
  return done;
}

void Retire(CUstream stream) {
  CUctx_st::Times& times = stream->context->times;
  times.retired = std::max(times.retired, stream->ready_ns);
  if ((stream->flags & CU_STREAM_NON_BLOCKING) == 0) {
    times.retired_blocking = std::max(times.retired_blocking, stream->ready_ns);
  }
}

Span HostWait(Simulator& simulator, uint64_t time) {
  uint64_t start = Now();
  if (time <= start) return {start, Now()};
  simulator.mutex.unlock();
  if (simulator.settings.virtual_clock) {
    SkipTo(time);
  } else {
    SleepUntil(time);
  }
  simulator.mutex.lock();
  return {start, Now()};
}

uint64_t WaitBeforeFree(Simulator& simulator, uint64_t address) {
  auto found = simulator.allocations.find(address);
  if (found == simulator.allocations.end()) return 0;
  CUcontext context = found->second.context;
  int device = found->second.device;
  uint64_t done = DoneOnDevice(simulator, device);
  if (done <= Now()) return done;
  Span wait = HostWait(simulator, done);
  Post({.kind = NoticeKind::kContextSynchronized,
        .context = context,
        .device = device,
        .start_ns = wait.start_ns,
        .end_ns = wait.end_ns});
  return done;
}

}  // namespace sim
