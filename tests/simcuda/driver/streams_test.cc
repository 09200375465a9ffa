#include <gtest/gtest.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

CUresult Launch(CUfunction kernel, CUstream stream) {
  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

TEST(DriverStreamsTest, EventsAreReadyAtOnceWithoutLag) {
  OnDevice({}, [] {
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(Launch(LoadKernel(), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  });
}

TEST(DriverStreamsTest, LaggingEventWaitsForLaterLaunches) {
  OnDevice({{"SIMCUDA_LAG", "2"}}, [] {
    CUfunction kernel = LoadKernel();
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    Launch(kernel, nullptr);
    EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    Launch(kernel, nullptr);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    Launch(kernel, nullptr);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  });
}

TEST(DriverStreamsTest, SynchronisationFinishesLaggingWork) {
  OnDevice({{"SIMCUDA_LAG", "100"}}, [] {
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    Launch(LoadKernel(), nullptr);
    EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  });
}

TEST(DriverStreamsTest, DestroyedStreamIsAnInvalidHandle) {
  OnDevice({}, [] {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(DriverStreamsTest, WaitForAValueEndsAtOnce) {
  OnDevice({}, [] {
    CUdeviceptr flag = 0;
    CUstream stream = nullptr;
    int supported = 0;
    ASSERT_EQ(
        cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0),
        CUDA_SUCCESS);
    EXPECT_EQ(supported, 1);
    ASSERT_EQ(cuMemAlloc(&flag, 8), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitValue64(stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWriteValue64(stream, flag, 1, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamBatchMemOp(stream, 0, nullptr, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitValue32(stream, flag, 1, 0), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(DriverStreamsTest, CaptureCollectsLaunchesOfStreamsThatJoinIt) {
  OnDevice({}, [] {
    CUfunction kernel = LoadKernel();
    CUstream main_stream = nullptr, side = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cuStreamCreate(&main_stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&side, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamBeginCapture(main_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(event, main_stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(side, event, 0), CUDA_SUCCESS);
    Launch(kernel, main_stream);
    Launch(kernel, side);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    ASSERT_EQ(cuStreamEndCapture(main_stream, &graph), CUDA_SUCCESS);
    size_t nodes = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
    EXPECT_EQ(nodes, 2u);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    EXPECT_EQ(cuStreamIsCapturing(side, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  });
}

}  // namespace
}  // namespace sim
