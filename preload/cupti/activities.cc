#include "preload/cupti/activities.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/cupti/activity_buffers.h"
#include "preload/cupti/clock_pairs.h"
#include "preload/cupti/pending_syncs.h"
#include "preload/cupti/read_activity.h"
#include "preload/cupti/stream_ids.h"
#include "preload/cupti/subscriber.h"
#include "preload/cupti/timed_lock.h"
#include "preload/process/write_guard.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

using session::Action;
using session::Kind;

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,         CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2,         CUPTI_ACTIVITY_KIND_MEMORY_POOL};

constexpr uint32_t kFlushPeriodMs = 1000;
// The record of a callback is not expected after this time.
constexpr uint64_t kSyncPatienceNs = 5000000000;
constexpr uint32_t kReadingMs = 2000;

// State: used only after this process has subscribed (preload/cupti/subscriber.cc).
constinit ActivityBuffers buffers;
constinit StreamIds stream_ids;
constinit PendingSyncs pending_syncs;
constinit ClockPairs clock_pairs;  // under `reading`
constinit TimedLock reading;       // held while a buffer is read

// Cache: what is registered and set in the process's copy of CUPTI.
constinit std::atomic<CUpti_BuffersCallbackRequestFunc> foreign_request{nullptr};
constinit std::atomic<CUpti_BuffersCallbackCompleteFunc> foreign_complete{nullptr};
constinit uint8_t host_pinned_before = 0;
constinit bool host_pinned_set = false;

// ---- Reading ------------------------------------------------------------------------------------

// Uses the fastest of three readings, whose two clocks were read closest together.
void PairClocks(const CuptiLibrary& library) {
  uint64_t best = ~uint64_t{0}, theirs = 0, ours = 0;
  for (int i = 0; i < 3; ++i) {
    uint64_t timestamp;
    const uint64_t before = NowNs();
    if (library.GetTimestamp(&timestamp) != CUPTI_SUCCESS) return;
    const uint64_t after = NowNs();
    if (after - before >= best) continue;
    best = after - before;
    theirs = timestamp;
    ours = before + best / 2;
  }
  clock_pairs.Add(theirs, ours);
}

void SetStream(const ReadActivity& read, session::Record* r) {
  if (read.stream == CUPTI_INVALID_STREAM_ID || read.stream == StreamIds::kNone) return;
  if (!stream_ids.Find(read.context, read.stream, &r->stream)) r->flags |= session::kStreamUnknown;
}

void SetContext(Process* p, const ReadActivity& read, session::Record* r) {
  uint64_t handle;
  if (!stream_ids.FindContext(read.context, &handle)) return;
  const session::ContextTable::Found context = p->contexts.Find(handle);
  r->context = context.number;
  if (r->device == session::kNoDevice && r->kind == Kind::kSync) r->device = context.device;
}

// Waits that a hook saw have already been recorded by it.
void RecordSync(Process* p, const session::Record& r) {
  session::Record seen;
  const uint64_t end_ns = r.time_ns;
  if (!pending_syncs.Take(r.action, r.stream, end_ns, &seen)) return;
  seen.duration_ns = r.duration_ns;
  if (seen.device == session::kNoDevice) seen.device = r.device;
  if (seen.context == 0) seen.context = r.context;
  CommitAlone(p, seen);
}

void RecordActivity(Process* p, const CUpti_Activity& activity) {
  ReadActivity read = Read(activity);
  session::Record& r = read.record;
  if (r.kind == Kind::kNone) return;
  const uint64_t start_ns = clock_pairs.ToOurs(read.start), end_ns = clock_pairs.ToOurs(read.end);
  if (start_ns == 0 || read.end < read.start) return p->Count(session::kActivitiesDropped);
  SetStream(read, &r);
  SetContext(p, read, &r);
  r.duration_ns =
      end_ns > start_ns ? end_ns - start_ns : 0;  // converted with different pairs, they may cross
  // The event of a wait is its end, as for waits recorded by hooks.
  r.time_ns = r.kind == Kind::kSync ? end_ns : start_ns;
  if (r.kind == Kind::kSync) return RecordSync(p, r);
  CommitAlone(p, r);
}

void RecordOldSyncs(Process* p, uint64_t older_than_ns) {
  session::Record sync;
  while (pending_syncs.TakeOlder(older_than_ns, &sync)) CommitAlone(p, sync);
}

void CountDropped(Process* p, const CuptiLibrary& library, CUcontext context, uint32_t stream) {
  size_t dropped = 0;
  if (library.ActivityGetNumDroppedRecords == nullptr ||
      library.ActivityGetNumDroppedRecords(context, stream, &dropped) != CUPTI_SUCCESS) {
    return;
  }
  for (; dropped != 0; --dropped) p->Count(session::kActivitiesDropped);
}

void ReadBuffer(Process* p, const CuptiLibrary& library, uint8_t* buffer, size_t bytes) {
  PairClocks(library);
  CUpti_Activity* activity = nullptr;
  while (library.ActivityGetNextRecord(buffer, bytes, &activity) == CUPTI_SUCCESS)
    RecordActivity(p, *activity);
  RecordOldSyncs(p, NowNs() - kSyncPatienceNs);
}

// ---- Buffers ------------------------------------------------------------------------------------

// State: as above.
constinit std::atomic<const CuptiLibrary*> activities_of{nullptr};
// While set, what CUPTI still delivers for us is dropped.
constinit std::atomic<bool> changing_hands{false};
constinit std::atomic<bool> ever_registered{false};

void CUPTIAPI OnRequest(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  const bool ours = activities_of.load(std::memory_order_acquire) != nullptr;
  const auto theirs = foreign_request.load(std::memory_order_acquire);
  if (!ours && theirs != nullptr) return theirs(buffer, bytes, max_records);
  const bool wanted = ours && !changing_hands.load(std::memory_order_acquire);
  *buffer = wanted ? buffers.Take() : nullptr;
  *bytes = *buffer == nullptr ? 0 : ActivityBuffers::kBytes;
  *max_records = 0;
}

void CUPTIAPI OnComplete(CUcontext context, uint32_t stream, uint8_t* buffer, size_t bytes,
                         size_t valid) {
  if (!buffers.Owns(buffer)) {
    const auto theirs = foreign_complete.load(std::memory_order_acquire);
    if (theirs != nullptr) theirs(context, stream, buffer, bytes, valid);
    return;
  }
  const Nesting nesting;
  const KeepErrno keep;
  const CuptiLibrary* library = activities_of.load(std::memory_order_acquire);
  const WriteGuard p(Process::IfRecording());
  const TimedLockGuard timed_lock(&reading, kReadingMs);
  if (p != nullptr && library != nullptr) {
    if (timed_lock) {
      ReadBuffer(p, *library, buffer, valid);
    } else {
      p->Count(session::kActivitiesDropped);
    }
    CountDropped(p, *library, context, stream);
  }
  buffers.Give(buffer);
}

void DisableKinds(const CuptiLibrary& library) {
  for (const CUpti_ActivityKind kind : kKinds) library.ActivityDisable(kind);
}

}  // namespace

void PrepareActivities(const CuptiLibrary& library) {
  if (library.ActivityGetAttribute == nullptr || library.ActivitySetAttribute == nullptr) return;
  constexpr auto kPinned = CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED;
  size_t size = sizeof(host_pinned_before);
  uint8_t wanted = 1;
  host_pinned_set =
      library.ActivityGetAttribute(kPinned, &size, &host_pinned_before) == CUPTI_SUCCESS &&
      library.ActivitySetAttribute(kPinned, &size, &wanted) == CUPTI_SUCCESS;
}

CUptiResult EnableActivities(const CuptiLibrary& library) {
  if (!buffers.Map()) return CUPTI_ERROR_OUT_OF_MEMORY;
  if (const TimedLockGuard timed_lock(&reading, kReadingMs); timed_lock) {
    clock_pairs.Forget();
    PairClocks(library);
  }
  // A buffer that the previous tool has left open would receive our records.
  if (foreign_complete.load(std::memory_order_acquire) != nullptr)
    library.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  activities_of.store(&library, std::memory_order_release);
  ever_registered.store(true, std::memory_order_release);
  CUptiResult result = library.ActivityRegisterCallbacks(OnRequest, OnComplete);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (result == CUPTI_SUCCESS) result = library.ActivityEnable(kind);
  }
  if (result != CUPTI_SUCCESS) {
    DisableKinds(library);
    activities_of.store(nullptr, std::memory_order_release);
    return result;
  }
  if (library.ActivityFlushPeriod != nullptr) library.ActivityFlushPeriod(kFlushPeriodMs);
  return CUPTI_SUCCESS;
}

void DisableActivities(const CuptiLibrary& library) {
  if (activities_of.load(std::memory_order_acquire) == nullptr) return;
  DisableKinds(library);
  library.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  // Threads that are writing a record get a moment to finish it, and no further buffer.
  changing_hands.store(true, std::memory_order_release);
  const timespec moment = {0, 1000000};
  syscall(SYS_nanosleep, &moment, nullptr);  // not a cancellation point
  library.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  activities_of.store(nullptr, std::memory_order_release);
  changing_hands.store(false, std::memory_order_release);
  if (library.ActivityFlushPeriod != nullptr) library.ActivityFlushPeriod(0);
  if (host_pinned_set) {
    size_t size = sizeof(host_pinned_before);
    library.ActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size,
                                 &host_pinned_before);
    host_pinned_set = false;
  }
  const WriteGuard p(Process::IfRecording());
  const TimedLockGuard timed_lock(&reading, kReadingMs);
  if (p != nullptr && timed_lock) RecordOldSyncs(p, ~uint64_t{0});
}

uint64_t CuptiDeviceBytes(const CuptiLibrary& library) {
  if (library.ActivityGetAttribute == nullptr) return 0;
  size_t size = 0, count = 0, bytes = sizeof(size_t);
  uint8_t pinned = 0;
  size_t one = sizeof(pinned);
  if (library.ActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &size) !=
          CUPTI_SUCCESS ||
      library.ActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &bytes,
                                   &count) != CUPTI_SUCCESS ||
      library.ActivityGetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &one,
                                   &pinned) != CUPTI_SUCCESS) {
    return 0;
  }
  return pinned != 0 ? 0 : size * count;
}

void LearnStream(const CuptiLibrary& library, CUcontext context, CUstream stream) {
  if (library.GetContextId == nullptr || library.GetStreamIdEx == nullptr) return;
  const bool per_thread = stream == CU_STREAM_PER_THREAD;
  uint32_t context_id, stream_id;
  if (library.GetContextId(context, &context_id) != CUPTI_SUCCESS ||
      library.GetStreamIdEx(context, stream, per_thread, &stream_id) != CUPTI_SUCCESS) {
    return;
  }
  stream_ids.Learn(context_id, stream_id, reinterpret_cast<uint64_t>(stream));
}

void LearnContext(const CuptiLibrary& library, CUcontext context) {
  uint32_t id;
  if (library.GetContextId == nullptr || library.GetContextId(context, &id) != CUPTI_SUCCESS)
    return;
  stream_ids.LearnContext(id, reinterpret_cast<uint64_t>(context));
  LearnStream(library, context, nullptr);
}

void RecordSyncLater(Process* p, const session::Record& sync) {
  if (activities_of.load(std::memory_order_acquire) == nullptr || !pending_syncs.Add(sync))
    CommitAlone(p, sync);
}

void RegisterForeignBuffers(CUpti_BuffersCallbackRequestFunc* request,
                            CUpti_BuffersCallbackCompleteFunc* complete) {
  if (*request == nullptr || *complete == nullptr) return;
  foreign_request.store(*request, std::memory_order_release);
  foreign_complete.store(*complete, std::memory_order_release);
  if (!ever_registered.load(std::memory_order_acquire)) return;
  *request = OnRequest;
  *complete = OnComplete;
}

void ForgetForeignBuffers() {
  foreign_request.store(nullptr, std::memory_order_release);
  foreign_complete.store(nullptr, std::memory_order_release);
}

}  // namespace gmt::preload
