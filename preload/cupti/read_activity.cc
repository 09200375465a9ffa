#include "preload/cupti/read_activity.h"

#include <stddef.h>

namespace gmt::preload {
namespace {

using session::Action;
using session::Kind;
using session::Memory;

template <typename Activity>
const Activity& As(const CUpti_Activity& activity) {
  return reinterpret_cast<const Activity&>(activity);
}

Action CopyAction(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return Action::kHostToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return Action::kDeviceToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return Action::kDeviceToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return Action::kHostToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return Action::kPeer;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
      return Action::kArray;
    default:
      return Action::kNone;
  }
}

// Variables of modules are not allocated by a call and have no kind.
Memory MemoryOf(CUpti_ActivityMemoryKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return Memory::kPinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
      return Memory::kDevice;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return Memory::kArray;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
      return Memory::kManaged;
    default:
      return Memory::kNone;
  }
}

void SetDevice(uint32_t device, session::Record* r) {
  if (device < session::kNoDevice) r->device = static_cast<uint8_t>(device);
}

// Memcpy and MemcpyPtoP have the same layout up to here.
static_assert(offsetof(CUpti_ActivityMemcpy7, streamId) ==
              offsetof(CUpti_ActivityMemcpyPtoP4, streamId));
static_assert(offsetof(CUpti_ActivityMemcpy7, streamId) ==
              offsetof(CUpti_ActivityMemcpy, streamId));
static_assert(offsetof(CUpti_ActivityMemset5, streamId) ==
              offsetof(CUpti_ActivityMemset, streamId));
static_assert(offsetof(CUpti_ActivityMemory4, memoryPoolConfig) ==
              offsetof(CUpti_ActivityMemory2, memoryPoolConfig));
static_assert(offsetof(CUpti_ActivityMemoryPool3, timestamp) ==
              offsetof(CUpti_ActivityMemoryPool, timestamp));
static_assert(offsetof(CUpti_ActivitySynchronization2, cudaEventId) ==
              offsetof(CUpti_ActivitySynchronization, cudaEventId));

template <typename Copy>
void ReadTransfer(const Copy& a, Action action, ReadActivity* read) {
  read->record.kind = Kind::kCopy;
  read->record.action = action;
  read->record.size = a.bytes;
  read->start = a.start;
  read->end = a.end;
  read->context = a.contextId;
  read->stream = a.streamId;
  SetDevice(a.deviceId, &read->record);
}

void ReadMemory(const CUpti_ActivityMemory4& a, ReadActivity* read) {
  const bool alloc = a.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  if (!alloc && a.memoryOperationType != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE) return;
  read->record.kind = Kind::kWitness;
  read->record.action = alloc ? Action::kAlloc : Action::kFree;
  const bool pooled = a.memoryPoolConfig.memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID;
  read->record.memory =
      pooled && MemoryOf(a.memoryKind) == Memory::kDevice ? Memory::kPool : MemoryOf(a.memoryKind);
  read->record.value = a.address;
  read->record.size = a.bytes;
  read->start = read->end = a.timestamp;
  read->context = a.contextId;
  read->stream = a.streamId;
  if (a.memoryKind != CUPTI_ACTIVITY_MEMORY_KIND_PINNED) SetDevice(a.deviceId, &read->record);
}

void ReadPool(const CUpti_ActivityMemoryPool3& a, ReadActivity* read) {
  switch (a.memoryPoolOperationType) {
    case CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED:
      read->record.action = Action::kPoolCreate;
      break;
    case CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED:
      read->record.action = Action::kPoolDestroy;
      break;
    case CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED:
      read->record.action = Action::kPoolTrim;
      break;
    default:
      return;
  }
  read->record.kind = Kind::kWitness;
  read->record.memory = Memory::kPool;
  read->record.value = a.address;
  read->record.size = a.size;
  read->start = read->end = a.timestamp;
  SetDevice(a.deviceId, &read->record);
}

// Waits for events are seen by interposition. CUPTI identifies the event by a number that is used
// nowhere else.
void ReadSync(const CUpti_ActivitySynchronization2& a, ReadActivity* read) {
  if (a.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE) {
    read->record.action = Action::kStream;
    read->stream = a.streamId;
  } else if (a.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE) {
    read->record.action = Action::kDevice;
  } else {
    return;
  }
  read->record.kind = Kind::kSync;
  read->start = a.start;
  read->end = a.end;
  read->context = a.contextId;
}

}  // namespace

ReadActivity Read(const CUpti_Activity& activity) {
  ReadActivity read;
  read.record.flags = session::kSeenByCupti;
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = As<CUpti_ActivityMemcpy7>(activity);
      ReadTransfer(copy, CopyAction(copy.copyKind), &read);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      ReadTransfer(As<CUpti_ActivityMemcpyPtoP4>(activity), Action::kPeer, &read);
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      ReadTransfer(As<CUpti_ActivityMemset5>(activity), Action::kMemset, &read);
      break;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      ReadMemory(As<CUpti_ActivityMemory4>(activity), &read);
      break;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      ReadPool(As<CUpti_ActivityMemoryPool3>(activity), &read);
      break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      ReadSync(As<CUpti_ActivitySynchronization2>(activity), &read);
      break;
    default:
      break;
  }
  return read;
}

}  // namespace gmt::preload
