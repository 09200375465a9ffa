#include <gtest/gtest.h>

#include <array>

#include "tests/simcuda/nccl/api.h"
#include "tests/simcuda/nccl/communicator.h"
#include "tests/simcuda/on_device.h"

extern "C" {
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* communicator,
                           ncclConfig_t* config);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t pncclCommUserRank(ncclComm_t communicator, int* rank);
ncclResult_t ncclMemAlloc(void** address, size_t size);
ncclResult_t ncclMemFree(void* address);
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, int type,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, int type, int operation,
                               ncclComm_t communicator, cudaStream_t stream);
}

namespace sim {
namespace {

constexpr int kInt32 = 2;
constexpr int kSum = 0;
using Ints = std::array<int32_t, 4>;

ncclComm_t Join(int ranks, int rank) {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t communicator = nullptr;
  EXPECT_EQ(ncclCommInitRank(&communicator, ranks, id, rank), ncclSuccess);
  return communicator;
}

CUdeviceptr OnTheDevice(const Ints& values) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, sizeof values), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(address, values.data(), sizeof values), CUDA_SUCCESS);
  return address;
}

Ints Read(CUdeviceptr address) {
  Ints values{};
  EXPECT_EQ(cuMemcpyDtoH(values.data(), address, sizeof values), CUDA_SUCCESS);
  return values;
}

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

TEST(NcclTest, CommunicatorTakesMemoryAtCreationAndMoreAtItsFirstOperation) {
  OnDevice({}, [] {
    CUdeviceptr buffer = OnTheDevice({});  // the communicator's small memory shares its page
    uint64_t before = FreeMemory();
    ncclComm_t communicator = Join(2, 1);
    EXPECT_EQ(FreeMemory(), before);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(ncclAllReduce(Pointer(buffer), Pointer(buffer), 4, kInt32, kSum, communicator, {}),
                ncclSuccess);
      EXPECT_EQ(FreeMemory(), before - ncclComm::kChannels * ncclComm::kChannelSize);
    }
    EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
    EXPECT_EQ(FreeMemory(), before);
  });
}

TEST(NcclTest, OperationOfAGroupRunsAtTheEndOfTheOutermostGroup) {
  OnDevice({}, [] {
    CUdeviceptr buffer = OnTheDevice({});
    ncclComm_t communicator = Join(2, 0);
    uint64_t before = FreeMemory();
    ncclGroupStart();
    ncclGroupStart();
    ncclAllReduce(Pointer(buffer), Pointer(buffer), 4, kInt32, kSum, communicator, {});
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(FreeMemory(), before);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_LT(FreeMemory(), before);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST(NcclTest, OperationIsALaunchOnItsStream) {
  OnDevice({{"SIMCUDA_LAG", "5"}}, [] {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CUdeviceptr buffer = OnTheDevice({});
    ncclComm_t communicator = Join(2, 0);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ncclAllReduce(Pointer(buffer), Pointer(buffer), 4, kInt32, kSum, communicator, stream);
    ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  });
}

TEST(NcclTest, AllGatherPutsTheOwnContributionInPlaceOfTheOthers) {
  OnDevice({{"SIMCUDA_DATA", "1M"}}, [] {
    CUdeviceptr from = OnTheDevice({7, 8, 0, 0}), to = OnTheDevice({});
    ncclComm_t communicator = Join(2, 1);
    ncclAllGather(Pointer(from), Pointer(to), 2, kInt32, communicator, {});
    EXPECT_EQ(Read(to), (Ints{7, 8, 7, 8}));
  });
}

TEST(NcclTest, ReduceScatterTakesTheSlotOfTheRank) {
  OnDevice({{"SIMCUDA_DATA", "1M"}}, [] {
    CUdeviceptr from = OnTheDevice({1, 2, 3, 4}), to = OnTheDevice({});
    ncclComm_t communicator = Join(2, 1);
    ncclReduceScatter(Pointer(from), Pointer(to), 2, kInt32, kSum, communicator, {});
    EXPECT_EQ(Read(to), (Ints{3, 4, 0, 0}));
  });
}

TEST(NcclTest, PartOfACommunicatorWritesOnlyItsOwnSlot) {
  OnDevice({{"SIMCUDA_DATA", "1M"}}, [] {
    CUdeviceptr from = OnTheDevice({5, 0, 0, 0}), to = OnTheDevice({9, 9, 9, 9});
    ncclComm_t part = nullptr;
    ASSERT_EQ(ncclCommSplit(Join(4, 3), 1, 1, &part, nullptr), ncclSuccess);
    int rank = -1;
    EXPECT_EQ(pncclCommUserRank(part, &rank), ncclSuccess);
    EXPECT_EQ(rank, 1);
    ncclAllGather(Pointer(from), Pointer(to), 1, kInt32, part, {});
    EXPECT_EQ(Read(to), (Ints{9, 5, 9, 9}));
  });
}

TEST(NcclTest, RankWithoutAColorGetsNoCommunicator) {
  OnDevice({}, [] {
    ncclComm_t part = Join(2, 0);
    EXPECT_EQ(ncclCommSplit(part, kNcclSplitNoColor, 0, &part, nullptr), ncclSuccess);
    EXPECT_EQ(part, nullptr);
  });
}

TEST(NcclTest, AllocatedMemoryIsMappedAndFreedCompletely) {
  OnDevice({}, [] {
    uint64_t before = FreeMemory();
    void* address = nullptr;
    ASSERT_EQ(ncclMemAlloc(&address, 5 * kMiB), ncclSuccess);
    EXPECT_EQ(FreeMemory(), before - 6 * kMiB);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_EQ(cuMemRetainAllocationHandle(&handle, address), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(ncclMemFree(address), ncclSuccess);
    EXPECT_EQ(FreeMemory(), before);
  });
}

TEST(NcclTest, FullDeviceIsACudaErrorAndLeavesNothingBehind) {
  OnDevice({{"SIMCUDA_MEMORY", "6M"}}, [] {
    CUdeviceptr buffer = OnTheDevice({});
    uint64_t before = FreeMemory();
    ncclComm_t communicator = Join(2, 0);
    EXPECT_EQ(ncclAllReduce(Pointer(buffer), Pointer(buffer), 4, kInt32, kSum, communicator, {}),
              ncclUnhandledCudaError);
    EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
    EXPECT_EQ(FreeMemory(), before);
    CUdeviceptr rest = 0;
    ASSERT_EQ(cuMemAlloc(&rest, before), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&buffer, 2 * kMiB), CUDA_SUCCESS);
    ncclUniqueId id{};
    EXPECT_EQ(ncclCommInitRank(&communicator, 2, id, 0), ncclUnhandledCudaError);
    EXPECT_EQ(communicator, nullptr);
  });
}

}  // namespace
}  // namespace sim
