// The activity API of the simulated CUPTI: a test for every kind of record, and for the buffers.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "tests/simcuda/cupti/client.h"
#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

uint64_t RealTime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + now.tv_nsec;
}

uint32_t IdOf(CUstream stream) {
  uint32_t id = 0;
  EXPECT_EQ(cuptiGetStreamId(nullptr, stream, &id), CUPTI_SUCCESS);
  return id;
}

CUresult LaunchGrid(CUfunction kernel, CUstream stream) {
  return cuLaunchKernel(kernel, 2, 3, 4, 32, 1, 1, 64, stream, nullptr, nullptr);
}

TEST(CuptiActivityTest, RecordsAllocationAndFreeOfDeviceMemory) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
    uint64_t before = RealTime();
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 5000), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(address), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
    EXPECT_EQ(records[1].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
    for (auto& record : records) {
      EXPECT_EQ(record.address, address);
      EXPECT_EQ(record.bytes, 5000u);
      EXPECT_EQ(record.memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
      EXPECT_EQ(record.processId, static_cast<uint32_t>(getpid()));
      EXPECT_EQ(record.contextId, 1u);
      EXPECT_EQ(record.streamId, CUPTI_INVALID_STREAM_ID);
      EXPECT_EQ(record.isAsync, 0u);
      EXPECT_GE(record.timestamp, before);
      EXPECT_LE(record.timestamp, RealTime());
    }
  });
}

TEST(CuptiActivityTest, HostAndManagedMemoryHaveTheirKinds) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
    void* host = nullptr;
    CUdeviceptr managed = 0;
    ASSERT_EQ(cuMemHostAlloc(&host, 100, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocManaged(&managed, 200, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    EXPECT_EQ(records[1].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
    EXPECT_EQ(records[2].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  });
}

TEST(CuptiActivityTest, StreamOrderedMemoryHasItsStreamAndItsPool) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
    CUstream stream = nullptr;
    CUdeviceptr address = 0;
    CUmemoryPool pool = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocAsync(&address, 3 * kMiB, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].isAsync, 1u);
    EXPECT_EQ(records[0].streamId, IdOf(stream));
    EXPECT_EQ(records[1].streamId, IdOf(nullptr));
    EXPECT_EQ(records[0].memoryPoolConfig.memoryPoolType, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
    EXPECT_EQ(records[0].memoryPoolConfig.address, reinterpret_cast<uint64_t>(pool));
    EXPECT_EQ(records[0].memoryPoolConfig.pool.size, 32 * kMiB);
    EXPECT_EQ(records[0].memoryPoolConfig.utilizedSize, 3 * kMiB);
  });
}

TEST(CuptiActivityTest, MappingOfVirtualMemoryIsDeviceMemory) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
    CUmemAllocationProp properties = OnDeviceZero();
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(address, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemUnmap(address, 2 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(records.size(), 2u);
    for (const CUpti_ActivityMemory4& record : records) {
      EXPECT_EQ(record.memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
      EXPECT_EQ(record.address, address);
      EXPECT_EQ(record.bytes, 2 * kMiB);
    }
  });
}

TEST(CuptiActivityTest, RecordsAPoolFromItsCreationToItsEnd) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY_POOL});
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool pool = nullptr;
    ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    ASSERT_EQ(cuMemPoolTrimTo(pool, 1234), CUDA_SUCCESS);
    ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemoryPool3>(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].memoryPoolOperationType,
              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
    EXPECT_EQ(records[1].memoryPoolOperationType,
              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED);
    EXPECT_EQ(records[1].minBytesToKeep, 1234u);
    EXPECT_EQ(records[2].memoryPoolOperationType,
              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
    for (auto& record : records) EXPECT_EQ(record.address, reinterpret_cast<uint64_t>(pool));
  });
}

TEST(CuptiActivityTest, KernelHasItsShapeAndItsStream) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER});
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(LaunchGrid(LoadKernel("work_on_it"), stream), CUDA_SUCCESS);
    auto kernels =
        CuptiClient::Flushed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_STREQ(kernels[0].name, "work_on_it");
    EXPECT_EQ(kernels[0].gridZ, 4);
    EXPECT_EQ(kernels[0].blockX, 32);
    EXPECT_EQ(kernels[0].dynamicSharedMemory, 64);
    EXPECT_EQ(kernels[0].streamId, IdOf(stream));
    EXPECT_LE(kernels[0].start, kernels[0].end);
    EXPECT_GT(kernels[0].start, 0u);
    bool launched = false;
    for (auto& call : CuptiClient::Seen<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER)) {
      if (call.cbid != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) continue;
      launched = true;
      EXPECT_EQ(call.correlationId, kernels[0].correlationId);
      EXPECT_LE(call.start, call.end);
    }
    EXPECT_TRUE(launched);
  });
}

TEST(CuptiActivityTest, CopyHasBytesKindsAndCorrelationOfTheRuntimeCall) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME});
    void *device = nullptr, *pinned = nullptr;
    char pageable[300] = {};
    ASSERT_EQ(cudaMalloc(&device, 300), cudaSuccess);
    ASSERT_EQ(cudaHostAlloc(&pinned, 300, 0), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(device, pinned, 300, cudaMemcpyDefault, nullptr), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(pageable, device, 200, cudaMemcpyDefault), cudaSuccess);
    auto copies = CuptiClient::Flushed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].bytes, 300u);
    EXPECT_EQ(copies[0].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    EXPECT_EQ(copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    EXPECT_EQ(copies[0].dstKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
    EXPECT_EQ(copies[1].bytes, 200u);
    EXPECT_EQ(copies[1].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
    EXPECT_EQ(copies[1].dstKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
    bool found = false;
    for (auto& call : CuptiClient::Seen<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME)) {
      if (call.cbid != CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020) continue;
      found = true;
      EXPECT_EQ(call.correlationId, copies[0].correlationId);
    }
    EXPECT_TRUE(found);
  });
}

TEST(CuptiActivityTest, CopyBetweenDevicesHasItsOwnKind) {
  OnDevice({{"SIMCUDA_DEVICES", "2"}}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2});
    void *here = nullptr, *there = nullptr;
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&there, 100), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&here, 100), cudaSuccess);
    ASSERT_EQ(cudaMemcpyPeerAsync(here, 0, there, 1, 100, nullptr), cudaSuccess);
    auto copies = CuptiClient::Flushed<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].srcDeviceId, 1u);
    EXPECT_EQ(copies[0].dstDeviceId, 0u);
    EXPECT_EQ(copies[0].bytes, 100u);
    EXPECT_TRUE(CuptiClient::Seen<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY).empty());
  });
}

TEST(CuptiActivityTest, MemsetHasItsValue) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMSET});
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 400), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(address, 77, 100, nullptr), CUDA_SUCCESS);
    auto sets = CuptiClient::Flushed<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
    ASSERT_EQ(sets.size(), 1u);
    EXPECT_EQ(sets[0].bytes, 400u);
    EXPECT_EQ(sets[0].value, 77u);
    EXPECT_EQ(sets[0].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  });
}

TEST(CuptiActivityTest, RecordsSynchronisationsOfEveryType) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT});
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    auto records =
        CuptiClient::Flushed<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    ASSERT_EQ(records.size(), 4u);
    EXPECT_EQ(records[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    EXPECT_EQ(records[0].streamId, IdOf(stream));
    EXPECT_EQ(records[1].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    EXPECT_EQ(records[1].streamId, IdOf(stream));
    EXPECT_EQ(records[1].cudaEventId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    EXPECT_EQ(records[2].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
    EXPECT_EQ(records[3].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    EXPECT_EQ(records[3].streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    for (auto& record : records) EXPECT_LE(record.start, record.end);
    auto events = CuptiClient::Seen<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].eventId, records[0].cudaEventId);
    EXPECT_EQ(events[0].eventId, records[2].cudaEventId);
    EXPECT_EQ(events[0].cudaEventSyncId, records[2].cudaEventSyncId);
    EXPECT_EQ(events[0].streamId, IdOf(nullptr));
  });
}

TEST(CuptiActivityTest, DumpsExistingStreamsAndContexts) {
  OnDevice({}, [] {
    CUstream early = nullptr, late = nullptr;
    ASSERT_EQ(cuStreamCreateWithPriority(&early, CU_STREAM_NON_BLOCKING, -3), CUDA_SUCCESS);
    CuptiClient::Start({});
    ASSERT_EQ(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_STREAM), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT), CUPTI_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&late, 0), CUDA_SUCCESS);
    auto streams = CuptiClient::Flushed<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
    ASSERT_EQ(streams.size(), 2u);
    EXPECT_EQ(streams[0].streamId, IdOf(early));
    EXPECT_EQ(static_cast<int32_t>(streams[0].priority), -3);
    EXPECT_EQ(streams[0].flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
    EXPECT_EQ(streams[1].streamId, IdOf(late));
    EXPECT_EQ(streams[1].flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT);
    auto contexts = CuptiClient::Seen<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
    ASSERT_EQ(contexts.size(), 1u);
    EXPECT_EQ(contexts[0].contextId, 1u);
    EXPECT_EQ(contexts[0].nullStreamId, IdOf(nullptr));
  });
}

TEST(CuptiActivityTest, ExternalIdsAreTiedToTheCallsInside) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME});
    CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    void* memory = nullptr;
    uint64_t last = 0;
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(kind, 111), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(kind, 222), CUPTI_SUCCESS);
    ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(kind, &last), CUPTI_SUCCESS);
    EXPECT_EQ(last, 222u);
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(kind, nullptr), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kind, &last), CUPTI_ERROR_QUEUE_EMPTY);
    ASSERT_EQ(cudaFree(memory), cudaSuccess);
    auto ids = CuptiClient::Flushed<CUpti_ActivityExternalCorrelation>(
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    auto api = CuptiClient::Seen<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
    ASSERT_EQ(ids.size(), 1u);
    ASSERT_EQ(api.size(), 2u);
    EXPECT_EQ(ids[0].externalId, 222u);
    EXPECT_EQ(ids[0].correlationId, api[0].correlationId);
  });
}

TEST(CuptiActivityTest, RecordsCallsExceptTheExcludedOnesOrOnlyTheEnabledOnes) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_RUNTIME});
    ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, 0),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, 1), CUPTI_SUCCESS);
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
    ASSERT_EQ(cudaFree(memory), cudaSuccess);  // calls cuMemFree, which then causes no record
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 16), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(address), CUDA_SUCCESS);
    auto runtime = CuptiClient::Flushed<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
    auto driver = CuptiClient::Seen<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
    ASSERT_EQ(runtime.size(), 1u);
    EXPECT_EQ(runtime[0].cbid, unsigned{CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020});
    ASSERT_EQ(driver.size(), 1u);
    EXPECT_EQ(driver[0].cbid, unsigned{CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2});
  });
}

TEST(CuptiActivityTest, WaitForABufferIsOverhead) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_MEMORY2});
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 1), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].overheadKind, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
    EXPECT_LE(records[0].start, records[0].end);
  });
}

TEST(CuptiActivityTest, KindsThatAreNotSimulatedAreRefused) {
  OnDevice({}, [] {
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING), CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_COUNT), CUPTI_ERROR_INVALID_KIND);
  });
}

TEST(CuptiActivityTest, RecordsOnlyTheEnabledContext) {
  OnDevice({}, [] {
    CuptiClient::Start({});
    CUcontext other = nullptr, mine = nullptr;
    CUdeviceptr address = 0;
    ASSERT_EQ(cuCtxGetCurrent(&mine), CUDA_SUCCESS);
    ASSERT_EQ(cuptiActivityEnableContext(mine, CUPTI_ACTIVITY_KIND_MEMORY2), CUPTI_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&address, 10), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxCreate_v4(&other, nullptr, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&address, 20), CUDA_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].bytes, 10u);
  });
}

void Allocate(int count) {
  for (int i = 0; i < count; ++i) {
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 1), CUDA_SUCCESS);
  }
}

TEST(CuptiBuffersTest, FullBufferIsReturnedByAThreadOfCupti) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2}, 4 * sizeof(CUpti_ActivityMemory4));
    Allocate(9);
    while (CuptiClient::completed() < 2) usleep(1000);
    EXPECT_EQ(CuptiClient::completed(), 2);
    EXPECT_TRUE(CuptiClient::completed_elsewhere());
    EXPECT_EQ(CuptiClient::requested(), 3);
    auto records = CuptiClient::Seen<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    EXPECT_EQ(records.size(), 8u);  // the ninth waits in the third buffer
  });
}

TEST(CuptiBuffersTest, PartlyFullBufferIsReturnedAfterThePeriod) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
    ASSERT_EQ(cuptiActivityFlushPeriod(5), CUPTI_SUCCESS);
    Allocate(1);
    while (CuptiClient::completed() < 1) usleep(1000);
    EXPECT_TRUE(CuptiClient::completed_elsewhere());
  });
}

TEST(CuptiBuffersTest, EveryThreadHasItsOwnBufferUnlessOneIsShared) {
  auto requested = [](uint8_t per_thread, int expected) {
    OnDevice({}, [=] {
      uint8_t value = per_thread;
      size_t size = sizeof(value);
      ASSERT_EQ(
          cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value),
          CUPTI_SUCCESS);
      CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
      Allocate(1);
      CUcontext context = nullptr;
      cuCtxGetCurrent(&context);
      std::thread([&] {
        cuCtxSetCurrent(context);
        Allocate(1);
      }).join();
      EXPECT_EQ(CuptiClient::requested(), expected);
      auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
      EXPECT_EQ(records.size(), 2u);
    });
  };
  requested(1, 2);
  requested(0, 1);
}

TEST(CuptiBuffersTest, WithoutABufferRecordsAreDroppedAndCounted) {
  OnDevice({}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2}, 2 * sizeof(CUpti_ActivityMemory4));
    Allocate(1);
    CuptiClient::GiveNoMore();
    Allocate(4);
    size_t dropped = 0;
    ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    EXPECT_EQ(dropped, 3u);
    ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    EXPECT_EQ(dropped, 0u);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    EXPECT_EQ(records.size(), 2u);
  });
}

// 256 MiB at 1G per second: for 250 ms the times of the copy are not known.
TEST(CuptiBuffersTest, BufferWithUnfinishedWorkIsReturnedLate) {
  OnDevice({{"SIMCUDA_BANDWIDTH", "1G"}, {"SIMCUDA_CLOCK", "virtual"}}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMCPY});
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 256 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoDAsync(address, address, 256 * kMiB, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(CuptiClient::Flushed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY).empty());
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    auto copies = CuptiClient::Flushed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].end - copies[0].start, 250'000'000u);
  });
}

TEST(CuptiBuffersTest, ForcedFlushReturnsUnfinishedWorkWithoutItsTimes) {
  OnDevice({{"SIMCUDA_BANDWIDTH", "1"}}, [] {  // one byte per second
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMCPY});
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 1000), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoDAsync(address, address, 1000, nullptr), CUDA_SUCCESS);
    auto copies = CuptiClient::Flushed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY,
                                                              CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].start, 0u);
    EXPECT_EQ(copies[0].end, 0u);
    EXPECT_EQ(copies[0].bytes, 1000u);
  });
}

TEST(CuptiActivityTest, SynchronisationLastsAsLongAsTheHostWaits) {
  OnDevice({{"SIMCUDA_BANDWIDTH", "1G"}, {"SIMCUDA_CLOCK", "virtual"}}, [] {
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 256 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoDAsync(address, address, 256 * kMiB, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(address), CUDA_SUCCESS);  // waits for the device
    auto waits =
        CuptiClient::Flushed<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(waits[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    EXPECT_GT(waits[0].end, waits[0].start);
    EXPECT_LE(waits[0].end - waits[0].start, 250'000'000u + 1'000'000);
  });
}

TEST(CuptiBuffersTest, RecordsUseTheClientsClock) {
  OnDevice({}, [] {
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback([]() -> uint64_t {
                timespec now;
                clock_gettime(CLOCK_MONOTONIC, &now);
                return 3 * (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + now.tv_nsec);
              }),
              CUPTI_SUCCESS);
    uint64_t before = 0, after = 0;
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMCPY});
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAlloc(&address, 16), CUDA_SUCCESS);
    ASSERT_EQ(cuptiGetTimestamp(&before), CUPTI_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoD(address, address, 16), CUDA_SUCCESS);
    ASSERT_EQ(cuptiGetTimestamp(&after), CUPTI_SUCCESS);
    auto records = CuptiClient::Flushed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_GE(records[0].start, before);
    EXPECT_LE(records[0].end, after);
  });
}

TEST(CuptiBuffersTest, DeviceRecordsTakeDeviceMemoryUnlessItIsPinned) {
  auto taken = [](uint8_t pinned) {
    uint64_t result = 0;
    size_t size = sizeof(pinned);
    uint64_t before = FreeMemory();
    EXPECT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size,
                                        &pinned),
              CUPTI_SUCCESS);
    CuptiClient::Start({CUPTI_ACTIVITY_KIND_MEMORY2});
    EXPECT_EQ(FreeMemory(), before);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    result = before - FreeMemory();
    EXPECT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
    EXPECT_EQ(FreeMemory(), before);
    return result;
  };
  OnDevice({{"SIMCUDA_CUPTI_MEMORY", "10M"}}, [&] { EXPECT_EQ(taken(0), 10 * kMiB); });
  OnDevice({{"SIMCUDA_CUPTI_MEMORY", "10M"}}, [&] { EXPECT_EQ(taken(1), 0u); });
}

// The library of CUDA 12 writes the shorter records of its version.
TEST(CuptiBuffersTest, OlderLibraryWritesShorterRecords) {
  OnDevice({}, [] {
    void* older = dlopen(SIMCUDA_LIBRARIES "/libcupti.so.12", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(older, nullptr) << dlerror();
    static size_t valid = 0;
    auto registers = reinterpret_cast<decltype(&cuptiActivityRegisterCallbacks)>(
        dlsym(older, "cuptiActivityRegisterCallbacks"));
    auto enable =
        reinterpret_cast<decltype(&cuptiActivityEnable)>(dlsym(older, "cuptiActivityEnable"));
    auto flush =
        reinterpret_cast<decltype(&cuptiActivityFlushAll)>(dlsym(older, "cuptiActivityFlushAll"));
    ASSERT_EQ(registers(
                  [](uint8_t** buffer, size_t* size, size_t*) {
                    alignas(8) static uint8_t memory[4096];
                    *buffer = memory;
                    *size = sizeof(memory);
                  },
                  [](CUcontext, uint32_t, uint8_t*, size_t, size_t bytes) { valid = bytes; }),
              CUPTI_SUCCESS);
    ASSERT_EQ(enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), CUPTI_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(flush(0), CUPTI_SUCCESS);
    EXPECT_EQ(valid, sizeof(CUpti_ActivitySynchronization));
  });
}

}  // namespace
}  // namespace sim
