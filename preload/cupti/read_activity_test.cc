#include "preload/cupti/read_activity.h"

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

using session::Action;
using session::Kind;
using session::Memory;

template <typename Activity>
Activity Zeroed(CUpti_ActivityKind kind) {
  Activity activity = {};
  activity.kind = kind;
  return activity;
}

template <typename Activity>
ReadActivity ReadOf(const Activity& activity) {
  return Read(reinterpret_cast<const CUpti_Activity&>(activity));
}

TEST(ReadActivityTest, KindsThatWereNotRequestedYieldNothing) {
  const auto kernel = Zeroed<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(ReadOf(kernel).record.kind, Kind::kNone);
}

CUpti_ActivityMemcpy7 Memcpy(uint8_t kind) {
  auto copy = Zeroed<CUpti_ActivityMemcpy7>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.copyKind = kind;
  copy.bytes = 4096;
  copy.start = 100;
  copy.end = 250;
  copy.deviceId = 1;
  copy.contextId = 3;
  copy.streamId = 7;
  return copy;
}

TEST(ReadActivityTest, CopyHasBytesTimesStreamAndDevice) {
  const ReadActivity read = ReadOf(Memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD));
  EXPECT_EQ(read.record.kind, Kind::kCopy);
  EXPECT_EQ(read.record.action, Action::kHostToDevice);
  EXPECT_EQ(read.record.size, 4096u);
  EXPECT_EQ(read.record.device, 1);
  EXPECT_EQ(read.record.flags, session::kSeenByCupti);
  EXPECT_EQ(read.start, 100u);
  EXPECT_EQ(read.end, 250u);
  EXPECT_EQ(read.context, 3u);
  EXPECT_EQ(read.stream, 7u);
}

TEST(ReadActivityTest, CopiesHaveADirection) {
  EXPECT_EQ(ReadOf(Memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH)).record.action, Action::kDeviceToHost);
  EXPECT_EQ(ReadOf(Memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD)).record.action, Action::kDeviceToDevice);
  EXPECT_EQ(ReadOf(Memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOH)).record.action, Action::kHostToHost);
  EXPECT_EQ(ReadOf(Memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP)).record.action, Action::kPeer);
  EXPECT_EQ(ReadOf(Memcpy(CUPTI_ACTIVITY_MEMCPY_KIND_ATOD)).record.action, Action::kArray);
  EXPECT_EQ(ReadOf(Memcpy(200)).record.action, Action::kNone);
}

TEST(ReadActivityTest, CopyBetweenDevicesIsPeer) {
  auto copy = Zeroed<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  copy.bytes = 1 << 20;
  copy.streamId = 9;
  const ReadActivity read = ReadOf(copy);
  EXPECT_EQ(read.record.action, Action::kPeer);
  EXPECT_EQ(read.record.size, 1u << 20);
  EXPECT_EQ(read.stream, 9u);
}

TEST(ReadActivityTest, FillIsACopyWithItsOwnAction) {
  auto fill = Zeroed<CUpti_ActivityMemset5>(CUPTI_ACTIVITY_KIND_MEMSET);
  fill.bytes = 512;
  fill.start = 5;
  fill.end = 9;
  fill.streamId = 4;
  const ReadActivity read = ReadOf(fill);
  EXPECT_EQ(read.record.kind, Kind::kCopy);
  EXPECT_EQ(read.record.action, Action::kMemset);
  EXPECT_EQ(read.record.size, 512u);
  EXPECT_EQ(read.end, 9u);
  EXPECT_EQ(read.stream, 4u);
}

CUpti_ActivityMemory4 MemoryCall(CUpti_ActivityMemoryOperationType operation,
                                 CUpti_ActivityMemoryKind kind) {
  auto memory = Zeroed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  memory.memoryOperationType = operation;
  memory.memoryKind = kind;
  memory.address = 0x7f0000000000;
  memory.bytes = 2 << 20;
  memory.timestamp = 77;
  memory.deviceId = 2;
  memory.streamId = CUPTI_INVALID_STREAM_ID;
  return memory;
}

TEST(ReadActivityTest, AllocationAndReleaseAreWitnesses) {
  const ReadActivity alloc = ReadOf(MemoryCall(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                                               CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  EXPECT_EQ(alloc.record.kind, Kind::kWitness);
  EXPECT_EQ(alloc.record.action, Action::kAlloc);
  EXPECT_EQ(alloc.record.memory, Memory::kDevice);
  EXPECT_EQ(alloc.record.value, 0x7f0000000000u);
  EXPECT_EQ(alloc.record.size, 2u << 20);
  EXPECT_EQ(alloc.record.device, 2);
  EXPECT_EQ(alloc.start, 77u);
  EXPECT_EQ(alloc.end, 77u);
  const ReadActivity release = ReadOf(
      MemoryCall(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED));
  EXPECT_EQ(release.record.action, Action::kFree);
  EXPECT_EQ(release.record.memory, Memory::kManaged);
}

TEST(ReadActivityTest, HostMemoryHasNoDevice) {
  const ReadActivity read = ReadOf(MemoryCall(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                                              CUPTI_ACTIVITY_MEMORY_KIND_PINNED));
  EXPECT_EQ(read.record.memory, Memory::kPinned);
  EXPECT_EQ(read.record.device, session::kNoDevice);
}

TEST(ReadActivityTest, ModuleVariablesHaveNoKind) {
  const ReadActivity read = ReadOf(MemoryCall(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                                              CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC));
  EXPECT_EQ(read.record.memory, Memory::kNone);
}

TEST(ReadActivityTest, PoolMemoryHasKindPool) {
  auto memory = MemoryCall(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                           CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  memory.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  memory.streamId = 13;
  const ReadActivity read = ReadOf(memory);
  EXPECT_EQ(read.record.memory, Memory::kPool);
  EXPECT_EQ(read.stream, 13u);
}

TEST(ReadActivityTest, OtherMemoryOperationsYieldNothing) {
  EXPECT_EQ(ReadOf(MemoryCall(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_INVALID,
                              CUPTI_ACTIVITY_MEMORY_KIND_DEVICE))
                .record.kind,
            Kind::kNone);
}

TEST(ReadActivityTest, PoolsAreCreatedTrimmedAndDestroyed) {
  auto pool = Zeroed<CUpti_ActivityMemoryPool3>(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  pool.address = 0x1234;
  pool.size = 64 << 20;
  pool.timestamp = 11;
  pool.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED;
  EXPECT_EQ(ReadOf(pool).record.action, Action::kPoolCreate);
  pool.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED;
  EXPECT_EQ(ReadOf(pool).record.action, Action::kPoolTrim);
  pool.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED;
  const ReadActivity read = ReadOf(pool);
  EXPECT_EQ(read.record.action, Action::kPoolDestroy);
  EXPECT_EQ(read.record.value, 0x1234u);
  EXPECT_EQ(read.record.size, 64u << 20);
  EXPECT_EQ(read.start, 11u);
}

TEST(ReadActivityTest, WaitsForStreamsAndContextsAreSyncs) {
  auto sync = Zeroed<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  sync.start = 10;
  sync.end = 30;
  sync.contextId = 1;
  sync.streamId = 7;
  const ReadActivity stream = ReadOf(sync);
  EXPECT_EQ(stream.record.kind, Kind::kSync);
  EXPECT_EQ(stream.record.action, Action::kStream);
  EXPECT_EQ(stream.stream, 7u);
  EXPECT_EQ(stream.end, 30u);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  sync.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  const ReadActivity context = ReadOf(sync);
  EXPECT_EQ(context.record.action, Action::kDevice);
  EXPECT_EQ(context.stream, uint32_t{CUPTI_INVALID_STREAM_ID});
}

TEST(ReadActivityTest, WaitsForEventsAreLeftToInterposition) {
  auto sync = Zeroed<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  EXPECT_EQ(ReadOf(sync).record.kind, Kind::kNone);
}

}  // namespace
}  // namespace gmt::preload
