// The activity API except its buffers (cupti_buffers.h) and its records (cupti_records.cc).
#include "tests/simcuda/cupti/activity.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bitset>
#include <cstring>
#include <map>
#include <set>

#include "tests/simcuda/cupti/buffers.h"
#include "tests/simcuda/cupti/session.h"

namespace sim {
namespace {

using Kinds = std::bitset<CUPTI_ACTIVITY_KIND_COUNT>;
using Functions = std::bitset<1024>;

struct Requests {
  Kinds kinds;
  std::map<CUcontext, Kinds> of_contexts;
  // Functions whose records were enabled individually, and functions that were excluded.
  Functions asked[2], excepted[2];  // [1]: of the runtime
  std::atomic<CUpti_ActivityThreadIdType> thread_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};
  std::map<CUpti_ActivityAttribute, uint64_t> attributes{
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 3200000},
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, 8 << 20},
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 250},
      {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, 25000},
      {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, 250},
      {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 0},
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, 3},
      {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, 3},
      {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, 0},
      {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1},
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS, 16 << 20}};
};

// Guarded by CuptiMutex().
Requests& Requested() {
  static Requests& requests = *new Requests;
  return requests;
}

size_t AttributeSize(CUpti_ActivityAttribute attribute) {
  switch (attribute) {
    case CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER:
    case CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED:
    case CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER:
      return sizeof(uint8_t);
    default:
      return sizeof(size_t);
  }
}

bool OfDevice(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
         kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMCPY2 ||
         kind == CUPTI_ACTIVITY_KIND_MEMSET;
}

CUptiResult Valid(CUpti_ActivityKind kind) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT) {
    return CUPTI_ERROR_INVALID_KIND;
  }
  return RecordSize(kind) > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}

void HoldIn(const Notice& notice) {
  if (notice.kind == NoticeKind::kContextCreated) {
    Driver().hold_memory(notice.context, OwnDeviceMemory());
  }
}

// Runs `change` on what is requested and updates the attachment to the driver.
template <typename Change>
CUptiResult Update(CUpti_ActivityKind kind, Change change) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (CUptiResult valid = Valid(kind); valid != CUPTI_SUCCESS) return valid;
  {
    std::lock_guard<std::mutex> lock(CuptiMutex());
    change(Requested());
    if (!UpdateAttachment()) {
      ForgetActivities();
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
  }
  StartWorker();
  if (OfDevice(kind) && CuptiSettings().cupti_memory > 0) Driver().replay(HoldIn);
  return CUPTI_SUCCESS;
}

CUptiResult EnableApi(bool runtime, CUpti_CallbackId id, bool enable) {
  if (id == 0 || id >= Functions{}.size()) return CUPTI_ERROR_INVALID_PARAMETER;
  return Update(runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER,
                [&](Requests& requests) {
                  requests.asked[runtime][id] = enable;
                  requests.excepted[runtime][id] = !enable;
                });
}

}  // namespace

bool AnyActivity() {
  Requests& requests = Requested();
  bool any = requests.kinds.any() || requests.asked[0].any() || requests.asked[1].any();
  for (auto& [context, kinds] : requests.of_contexts) any |= kinds.any();
  return any;
}

void ForgetActivities() {
  Requested().kinds.reset();
  Requested().of_contexts.clear();
  for (auto* functions : {Requested().asked, Requested().excepted}) {
    functions[0].reset();
    functions[1].reset();
  }
}

bool IsEnabled(CUpti_ActivityKind kind, CUcontext context) {
  std::lock_guard<std::mutex> lock(CuptiMutex());
  if (Requested().kinds[kind]) return true;
  auto found = Requested().of_contexts.find(context);
  return found != Requested().of_contexts.end() && found->second[kind];
}

bool IsApiEnabled(bool runtime, uint32_t id) {
  if (id == 0 || id >= Functions{}.size()) return false;
  std::lock_guard<std::mutex> lock(CuptiMutex());
  CUpti_ActivityKind kind = runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  return Requested().asked[runtime][id] ||
         (Requested().kinds[kind] && !Requested().excepted[runtime][id]);
}

size_t RecordSize(CUpti_ActivityKind kind) {
  constexpr bool kThirteen = SIMCUDA_CUPTI_VERSION >= 130000;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return kThirteen ? sizeof(CUpti_ActivityMemcpy6) : sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return kThirteen ? sizeof(CUpti_ActivityKernel10) : sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return kThirteen ? sizeof(CUpti_ActivityCudaEvent2) : sizeof(CUpti_ActivityCudaEvent);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return kThirteen ? sizeof(CUpti_ActivitySynchronization2)
                       : sizeof(CUpti_ActivitySynchronization);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return kThirteen ? sizeof(CUpti_ActivityMemoryPool3) : sizeof(CUpti_ActivityMemoryPool2);
    default:
      return 0;
  }
}

uint32_t ThreadNumber() {
  if (Requested().thread_type.load() == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    return static_cast<uint32_t>(syscall(SYS_gettid));
  }
  return static_cast<uint32_t>(pthread_self());
}

uint64_t OwnDeviceMemory() {
  std::lock_guard<std::mutex> lock(CuptiMutex());
  Requests& requests = Requested();
  bool wanted = false;
  for (int kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; ++kind) {
    wanted |= requests.kinds[kind] && OfDevice(static_cast<CUpti_ActivityKind>(kind));
  }
  bool elsewhere = requests.attributes[CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED] != 0 ||
                   requests.attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] == 0;
  return wanted && !elsewhere ? CuptiSettings().cupti_memory : 0;
}

ExternalIds& ThreadExternalIds() {
  // Never destroyed: CUDA calls may come even after a thread's own destructors.
  thread_local ExternalIds* const ids = new ExternalIds;
  return *ids;
}

}  // namespace sim

using sim::CuptiMutex;
using sim::Refusal;
using sim::Requested;

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return sim::Update(kind, [&](sim::Requests& requests) { requests.kinds[kind] = true; });
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return sim::Update(kind, [&](sim::Requests& requests) {
    requests.kinds[kind] = false;
    if (kind != CUPTI_ACTIVITY_KIND_RUNTIME && kind != CUPTI_ACTIVITY_KIND_DRIVER) return;
    requests.asked[kind == CUPTI_ACTIVITY_KIND_RUNTIME].reset();
    requests.excepted[kind == CUPTI_ACTIVITY_KIND_RUNTIME].reset();
  });
}

CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  return sim::Update(kind,
                     [&](sim::Requests& requests) { requests.of_contexts[context][kind] = true; });
}

CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  return sim::Update(kind,
                     [&](sim::Requests& requests) { requests.of_contexts[context][kind] = false; });
}

// Existing contexts and streams are recorded as if they were created now.
CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  CUptiResult result = cuptiActivityEnable(kind);
  if (result != CUPTI_SUCCESS) return result;
  if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) {
    sim::Driver().replay([](const sim::Notice& notice) {
      if (notice.kind == sim::NoticeKind::kContextCreated) sim::Record(notice);
    });
  }
  if (kind == CUPTI_ACTIVITY_KIND_STREAM) {
    sim::Driver().replay([](const sim::Notice& notice) {
      if (notice.kind == sim::NoticeKind::kStreamCreated) sim::Record(notice);
    });
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t enable) {
  return sim::EnableApi(true, id, enable != 0);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t enable) {
  return sim::EnableApi(false, id, enable != 0);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (CUptiResult refusal = Refusal(false); refusal != CUPTI_SUCCESS) return refusal;
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  sim::SetBufferCallbacks(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (!sim::HasBufferCallbacks()) return CUPTI_ERROR_INVALID_OPERATION;
  sim::Flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

// Context and stream have been ignored since CUDA 6: all buffers are flushed.
CUptiResult cuptiActivityFlush(CUcontext, uint32_t, uint32_t flag) {
  return cuptiActivityFlushAll(flag);
}

CUptiResult cuptiActivityFlushPeriod(uint32_t milliseconds) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  sim::SetFlushPeriod(milliseconds);
  sim::StartWorker();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* next = buffer;
  if (*record != nullptr) {
    size_t size = sim::RecordSize((*record)->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    next = reinterpret_cast<uint8_t*>(*record) + size;
  }
  if (next >= buffer + valid) {
    *record = nullptr;
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  auto found = reinterpret_cast<CUpti_Activity*>(next);
  if (sim::RecordSize(found->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = sim::TakeDropped();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                      void* value) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (size == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard<std::mutex> lock(CuptiMutex());
  auto found = Requested().attributes.find(attribute);
  if (found == Requested().attributes.end()) return CUPTI_ERROR_NOT_SUPPORTED;
  size_t needed = sim::AttributeSize(attribute);
  if (*size < needed) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  std::memcpy(value, &found->second, needed);
  *size = needed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                      void* value) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (size == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(CuptiMutex());
    auto found = Requested().attributes.find(attribute);
    if (found == Requested().attributes.end()) return CUPTI_ERROR_NOT_SUPPORTED;
    size_t needed = sim::AttributeSize(attribute);
    if (*size < needed) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    std::memcpy(&number, value, needed);
    found->second = number;
  }
  if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
    sim::SetBufferPerThread(number != 0);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  Requested().thread_type.store(type);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  *type = Requested().thread_type.load();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
      kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  sim::ThreadExternalIds()[kind].push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* last) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
      kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  std::vector<uint64_t>& ids = sim::ThreadExternalIds()[kind];
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}
