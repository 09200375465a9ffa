// Converts the driver's notices to activity records.
//
// Each record is built in the newest form, that of CUPTI 13.0, and truncated to the size of this
// version's form (cupti_activity.h, RecordSize): the forms of a kind have only ever grown at the
// end.
#include <unistd.h>

#include <cstddef>

#include "tests/simcuda/cupti/activity.h"
#include "tests/simcuda/cupti/buffers.h"
#include "tests/simcuda/cupti/names.h"
#include "tests/simcuda/cupti/session.h"

namespace sim {
namespace {

template <typename Form>
void Write(const Form& form, const LaterTimes* later = nullptr) {
  static_assert(sizeof(Form) % 8 == 0);
  Append(&form, RecordSize(form.kind), later);
}

// The position of a record's times, and when they will be known.
template <typename Form>
LaterTimes Later(const Notice& notice) {
  return {offsetof(Form, start), offsetof(Form, end), notice.start_ns, notice.end_ns};
}

void WriteExternalIds(uint32_t correlation) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, nullptr)) return;
  const ExternalIds& ids = ThreadExternalIds();
  for (size_t kind = 0; kind < ids.size(); ++kind) {
    if (ids[kind].empty()) continue;
    CUpti_ActivityExternalCorrelation form{};
    form.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    form.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    form.externalId = ids[kind].back();
    form.correlationId = correlation;
    Write(form);
  }
}

void WriteApi(const Notice& notice) {
  uint32_t id = notice.runtime ? RuntimeFunctionId(notice.name) : DriverFunctionId(notice.name);
  // Calls made by the runtime cause callbacks but no records: PyTorch's profiler refuses two calls
  // that launch the same kernel, and its traces from GPUs show only those of the runtime.
  if (notice.inside_runtime || !IsApiEnabled(notice.runtime, id)) return;
  uint64_t& entered = notice.scratch[1];
  if (notice.kind == NoticeKind::kApiEnter) {
    entered = Timestamp();
    WriteExternalIds(notice.correlation);
    return;
  }
  if (entered == 0) return;  // enabled in the meantime
  CUpti_ActivityAPI form{};
  form.kind = notice.runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  form.cbid = id;
  form.start = entered;
  form.end = Timestamp();
  form.processId = getpid();
  form.threadId = ThreadNumber();
  form.correlationId = notice.correlation;
  form.returnValue = *static_cast<const uint32_t*>(notice.result);
  Write(form);
}

void WriteKernel(const Notice& notice) {
  for (CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL}) {
    if (!IsEnabled(kind, notice.context)) continue;
    CUpti_ActivityKernel10 form{};
    form.kind = kind;
    form.registersPerThread = 32;
    form.deviceId = notice.device;
    form.contextId = notice.context_id;
    form.streamId = notice.stream_id;
    form.gridX = notice.grid[0];
    form.gridY = notice.grid[1];
    form.gridZ = notice.grid[2];
    form.blockX = notice.block[0];
    form.blockY = notice.block[1];
    form.blockZ = notice.block[2];
    form.dynamicSharedMemory = notice.shared_memory;
    form.correlationId = notice.correlation;
    form.gridId = notice.correlation;
    form.name = notice.name;
    form.graphId = notice.graph_id;
    LaterTimes later = Later<CUpti_ActivityKernel10>(notice);
    return Write(form, &later);
  }
}

uint8_t CopyKind(const Notice& notice) {
  auto on_device = [](Memory memory) {
    return memory == Memory::kDevice || memory == Memory::kManaged;
  };
  if (on_device(notice.from)) {
    return on_device(notice.to) ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  }
  return on_device(notice.to) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

// `Memory` has the values of CUpti_ActivityMemoryKind.
template <typename Form>
void FillCopy(Form& form, const Notice& notice) {
  form.srcKind = static_cast<uint8_t>(notice.from);
  form.dstKind = static_cast<uint8_t>(notice.to);
  form.bytes = notice.size;
  form.deviceId = notice.device;
  form.contextId = notice.context_id;
  form.streamId = notice.stream_id;
  form.correlationId = notice.correlation;
  form.graphId = notice.graph_id;
}

void WriteCopy(const Notice& notice) {
  if (notice.peer >= 0) {
    if (!IsEnabled(CUPTI_ACTIVITY_KIND_MEMCPY2, notice.context)) return;
    CUpti_ActivityMemcpyPtoP4 form{};
    form.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    form.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    FillCopy(form, notice);
    form.srcDeviceId = notice.peer;
    form.dstDeviceId = notice.device;
    LaterTimes later = Later<CUpti_ActivityMemcpyPtoP4>(notice);
    return Write(form, &later);
  }
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_MEMCPY, notice.context)) return;
  CUpti_ActivityMemcpy6 form{};
  form.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  form.copyKind = CopyKind(notice);
  FillCopy(form, notice);
  form.copyCount = 1;
  LaterTimes later = Later<CUpti_ActivityMemcpy6>(notice);
  Write(form, &later);
}

void WriteSet(const Notice& notice) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_MEMSET, notice.context)) return;
  CUpti_ActivityMemset4 form{};
  form.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  form.value = notice.value;
  form.bytes = notice.size;
  form.deviceId = notice.device;
  form.contextId = notice.context_id;
  form.streamId = notice.stream_id;
  form.correlationId = notice.correlation;
  form.memoryKind = static_cast<uint16_t>(notice.to);
  form.graphId = notice.graph_id;
  LaterTimes later = Later<CUpti_ActivityMemset4>(notice);
  Write(form, &later);
}

void WriteWork(const Notice& notice) {
  switch (notice.work) {
    case WorkKind::kKernel:
      return WriteKernel(notice);
    case WorkKind::kCopy:
      return WriteCopy(notice);
    case WorkKind::kSet:
      return WriteSet(notice);
  }
}

void WriteSynchronization(const Notice& notice, CUpti_ActivitySynchronizationType type) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, notice.context)) return;
  bool of_stream = type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE ||
                   type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  CUpti_ActivitySynchronization2 form{};
  form.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  form.type = type;
  ClockMoment moment;
  form.start = moment.Timestamp(notice.start_ns);
  form.end = moment.Timestamp(notice.end_ns);
  form.correlationId = notice.correlation;
  form.contextId = notice.context_id;
  form.streamId = of_stream ? notice.stream_id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  form.cudaEventId =
      notice.event != nullptr ? notice.event_id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  form.cudaEventSyncId = notice.event_record;
  Write(form);
}

void WriteEvent(const Notice& notice) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT, notice.context)) return;
  CUpti_ActivityCudaEvent2 form{};
  form.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  form.correlationId = notice.correlation;
  form.contextId = notice.context_id;
  form.streamId = notice.stream_id;
  form.eventId = notice.event_id;
  form.deviceId = notice.device;
  form.cudaEventSyncId = notice.event_record;
  Write(form);
}

void WriteStream(const Notice& notice) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_STREAM, notice.context)) return;
  CUpti_ActivityStream form{};
  form.kind = CUPTI_ACTIVITY_KIND_STREAM;
  form.contextId = notice.context_id;
  form.streamId = notice.stream_id;
  form.priority = notice.stream_priority;
  form.flag = (notice.stream_flags & CU_STREAM_NON_BLOCKING) != 0
                  ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
                  : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
  form.correlationId = notice.correlation;
  Write(form);
}

void WriteContext(const Notice& notice) {
  if (uint64_t bytes = OwnDeviceMemory()) Driver().hold_memory(notice.context, bytes);
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_CONTEXT, notice.context)) return;
  CUpti_ActivityContext3 form{};
  form.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  form.contextId = notice.context_id;
  form.deviceId = notice.device;
  form.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  uint32_t default_stream = Driver().stream_id(notice.context, nullptr, false);
  form.nullStreamId = static_cast<uint16_t>(default_stream);
  Write(form);
}

void WriteMemory(const Notice& notice) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_MEMORY2, notice.context)) return;
  CUpti_ActivityMemory4 form{};
  form.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  form.memoryOperationType = notice.memory_action == MemoryAction::kAllocated
                                 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                 : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  form.memoryKind = static_cast<CUpti_ActivityMemoryKind>(notice.to);
  form.correlationId = notice.correlation;
  form.address = notice.address;
  form.bytes = notice.size;
  form.timestamp = ClockMoment().Timestamp(notice.end_ns);
  form.processId = getpid();
  form.deviceId = notice.device;
  form.contextId = notice.context_id;
  form.streamId = notice.async ? notice.stream_id : CUPTI_INVALID_STREAM_ID;
  form.isAsync = notice.async;
  if (notice.pool.handle != 0) {
    form.memoryPoolConfig.memoryPoolType = notice.pool.imported
                                               ? CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED
                                               : CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    form.memoryPoolConfig.address = notice.pool.handle;
    form.memoryPoolConfig.releaseThreshold = notice.pool.release_threshold;
    form.memoryPoolConfig.pool.size = notice.pool.reserved;
    form.memoryPoolConfig.utilizedSize = notice.pool.used;
  }
  Write(form);
}

void WritePool(const Notice& notice) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_MEMORY_POOL, notice.context)) return;
  CUpti_ActivityMemoryPool3 form{};
  form.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  form.memoryPoolOperationType = notice.pool_action == PoolAction::kCreated
                                     ? CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED
                                 : notice.pool_action == PoolAction::kDestroyed
                                     ? CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED
                                     : CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED;
  form.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  form.correlationId = notice.correlation;
  form.processId = getpid();
  form.deviceId = notice.device;
  form.minBytesToKeep = notice.size;
  form.address = notice.pool.handle;
  form.size = notice.pool.reserved;
  form.releaseThreshold = notice.pool.release_threshold;
  form.timestamp = ClockMoment().Timestamp(notice.end_ns);
  form.utilizedSize = notice.pool.used;
  Write(form);
}

}  // namespace

void OnBufferRequested(uint64_t start, uint64_t end) {
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_OVERHEAD, nullptr)) return;
  CUpti_ActivityOverhead3 form{};
  form.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  form.overheadKind = CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
  form.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  form.objectId.pt.processId = getpid();
  form.objectId.pt.threadId = ThreadNumber();
  form.start = start;
  form.end = end;
  Write(form);
}

void Record(const Notice& notice) {
  switch (notice.kind) {
    case NoticeKind::kApiEnter:
    case NoticeKind::kApiExit:
      return WriteApi(notice);
    case NoticeKind::kWork:
      return WriteWork(notice);
    case NoticeKind::kStreamSynchronized:
      return WriteSynchronization(notice, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    case NoticeKind::kContextSynchronized:
      return WriteSynchronization(notice, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    case NoticeKind::kEventSynchronized:
      return WriteSynchronization(notice, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
    case NoticeKind::kStreamWaitsEvent:
      return WriteSynchronization(notice, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    case NoticeKind::kEventRecorded:
      return WriteEvent(notice);
    case NoticeKind::kStreamCreated:
      return WriteStream(notice);
    case NoticeKind::kContextCreated:
      return WriteContext(notice);
    case NoticeKind::kMemory:
      return WriteMemory(notice);
    case NoticeKind::kPool:
      return WritePool(notice);
    default:
      return;  // for these there are only callbacks
  }
}

}  // namespace sim
