// Time on the device: streams, events, waits of streams and of the host. The clock is virtual in
// tests that compare durations and real in tests that need an actual wait.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

const std::map<std::string, std::string> kVirtual = {
    {"SIMCUDA_KERNEL_TIME", "10ms"}, {"SIMCUDA_BANDWIDTH", "1G"}, {"SIMCUDA_CLOCK", "virtual"}};

// Work that a test submits to the device, and events around it.
class Work {
 public:
  Work() {
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, ""), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&kernel_, module, "kernel"), CUDA_SUCCESS);
  }

  static CUstream Stream(unsigned int flags = 0) {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
  }

  static CUevent Record(CUstream stream) {
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    return event;
  }

  void Launch(CUstream stream, int times = 1) {
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                CUDA_SUCCESS);
    }
  }

  // Keeps streams busy for ten seconds, so that everything a test queues next begins after that and
  // the time the host takes for queueing does not matter. Returns the event of its end.
  CUevent Plug(std::initializer_list<CUstream> streams) {
    CUstream apart = Stream(CU_STREAM_NON_BLOCKING);
    Launch(apart, 1000);
    CUevent end = Record(apart);
    for (CUstream stream : streams) EXPECT_EQ(cuStreamWaitEvent(stream, end, 0), CUDA_SUCCESS);
    return end;
  }

  // Returns the milliseconds between two events, after both are done.
  static float Between(CUevent from, CUevent to) {
    float milliseconds = -1;
    EXPECT_EQ(cuEventSynchronize(from), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(to), CUDA_SUCCESS);
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, from, to), CUDA_SUCCESS);
    return milliseconds;
  }

 private:
  CUfunction kernel_ = nullptr;
};

TEST(TimelineTest, WorkOfOneStreamRunsInSequence) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream stream = Work::Stream();
    CUevent before = work.Plug({stream});
    work.Launch(stream, 3);
    CUevent after = Work::Record(stream);
    EXPECT_EQ(cuEventQuery(after), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    EXPECT_FLOAT_EQ(Work::Between(before, after), 30);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
  });
}

TEST(TimelineTest, StreamsRunConcurrently) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream one = Work::Stream(), other = Work::Stream();
    CUevent before = work.Plug({one, other});
    work.Launch(one, 4);
    work.Launch(other, 4);
    EXPECT_FLOAT_EQ(Work::Between(before, Work::Record(other)), 40);
  });
}

TEST(TimelineTest, WaitForAnEventDelaysWorkUntilTheOtherStream) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream one = Work::Stream(), other = Work::Stream();
    CUevent before = work.Plug({one});
    work.Launch(one, 4);
    CUevent done = Work::Record(one);
    work.Launch(one, 4);  // not waited for
    ASSERT_EQ(cuStreamWaitEvent(other, done, 0), CUDA_SUCCESS);
    work.Launch(other);
    EXPECT_FLOAT_EQ(Work::Between(before, Work::Record(other)), 50);
  });
}

TEST(TimelineTest, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream blocking = Work::Stream(), apart = Work::Stream(CU_STREAM_NON_BLOCKING);
    CUevent before = work.Plug({blocking, apart});
    work.Launch(blocking, 2);
    work.Launch(apart, 7);
    work.Launch(nullptr);  // after the two of the blocking stream, not after the seven
    CUevent of_legacy = Work::Record(nullptr);
    work.Launch(blocking);
    CUevent behind = Work::Record(blocking);
    EXPECT_FLOAT_EQ(Work::Between(before, of_legacy), 30);
    EXPECT_FLOAT_EQ(Work::Between(before, behind), 40);
  });
}

// Operations of the legacy stream take no time here; the blocking streams wait for each other
// through it.
template <typename Give>
void ExpectLegacyStreamToJoinBlockingOnes(Give give) {
  OnDevice(kVirtual, [&] {
    Work work;
    CUstream one = Work::Stream(), other = Work::Stream();
    CUevent before = work.Plug({one});
    work.Launch(one, 4);
    give();
    work.Launch(other);
    EXPECT_FLOAT_EQ(Work::Between(before, Work::Record(other)), 50);
  });
}

TEST(TimelineTest, LegacyStreamsWaitForAnEventFollowsTheBlockingStreams) {
  ExpectLegacyStreamToJoinBlockingOnes([] {
    CUevent done = Work::Record(Work::Stream(CU_STREAM_NON_BLOCKING));
    EXPECT_TRUE(cuEventQuery(done) == CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(nullptr, done, 0), CUDA_SUCCESS);
  });
}

TEST(TimelineTest, LegacyStreamsMemoryFollowsTheBlockingStreams) {
  ExpectLegacyStreamToJoinBlockingOnes([] {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAllocAsync(&address, 1, nullptr), CUDA_SUCCESS);
  });
}

TEST(TimelineTest, WaitForAnEventThatWasNeverRecordedDoesNothing) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream one = Work::Stream(), other = Work::Stream();
    CUevent never = nullptr;
    ASSERT_EQ(cuEventCreate(&never, 0), CUDA_SUCCESS);
    CUevent before = work.Plug({one, other});
    work.Launch(one, 4);
    ASSERT_EQ(cuStreamWaitEvent(nullptr, never, 0), CUDA_SUCCESS);
    work.Launch(other);
    EXPECT_FLOAT_EQ(Work::Between(before, Work::Record(other)), 10);
  });
}

TEST(TimelineTest, CopiesTakeTheirBytesDividedByTheBandwidth) {
  OnDevice(kVirtual, [] {
    CUdeviceptr from = 0, to = 0;
    ASSERT_EQ(cuMemAlloc(&from, 256 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&to, 256 * kMiB), CUDA_SUCCESS);
    CUstream stream = Work::Stream();
    CUevent before = Work().Plug({stream});
    ASSERT_EQ(cuMemcpyDtoDAsync(to, from, 256 * kMiB, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8Async(to, 0, 256 * kMiB, stream), CUDA_SUCCESS);
    EXPECT_FLOAT_EQ(Work::Between(before, Work::Record(stream)), 500);
  });
}

bool Finished(CUevent event) { return cuEventQuery(event) == CUDA_SUCCESS; }

TEST(TimelineTest, HostWaitsForTheWorkItSynchronisesWith) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream shorter = Work::Stream(), longer = Work::Stream();
    work.Launch(shorter, 10);
    work.Launch(longer, 10000);
    CUevent end_of_shorter = Work::Record(shorter), end_of_longer = Work::Record(longer);
    ASSERT_EQ(cuStreamSynchronize(shorter), CUDA_SUCCESS);
    EXPECT_TRUE(Finished(end_of_shorter));
    EXPECT_FALSE(Finished(end_of_longer));
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_TRUE(Finished(end_of_longer));
  });
}

TEST(TimelineTest, FreeWaitsForTheDeviceAndStreamOrderedFreeDoesNot) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream stream = Work::Stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr ordinary = 0, ordered = 0;
    ASSERT_EQ(cuMemAlloc(&ordinary, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocAsync(&ordered, 1, stream), CUDA_SUCCESS);
    work.Launch(stream, 1000);
    CUevent end = Work::Record(stream);
    ASSERT_EQ(cuMemFreeAsync(ordered, stream), CUDA_SUCCESS);
    EXPECT_FALSE(Finished(end));
    ASSERT_EQ(cuMemFree(ordinary), CUDA_SUCCESS);
    EXPECT_TRUE(Finished(end));
  });
}

TEST(TimelineTest, HostWaitsForCopiesToPageableButNotToPinnedMemory) {
  OnDevice(kVirtual, [] {
    CUdeviceptr device = 0;
    void* pinned = nullptr;
    std::vector<char> pageable(kMiB);
    ASSERT_EQ(cuMemAlloc(&device, 1000 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemHostAlloc(&pinned, 1000 * kMiB, 0), CUDA_SUCCESS);
    CUstream stream = Work::Stream();
    ASSERT_EQ(cuMemcpyDtoHAsync(pinned, device, 1000 * kMiB, stream), CUDA_SUCCESS);
    CUevent end = Work::Record(stream);
    EXPECT_FALSE(Finished(end));
    ASSERT_EQ(cuMemcpyDtoHAsync(pageable.data(), device, kMiB, stream), CUDA_SUCCESS);
    EXPECT_TRUE(Finished(end));
  });
}

TEST(TimelineTest, WorkOfADestroyedStreamStillCounts) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream gone = Work::Stream(CU_STREAM_NON_BLOCKING), left = Work::Stream();
    CUevent before = Work::Record(left);
    work.Launch(gone, 100);
    ASSERT_EQ(cuStreamDestroy(gone), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_GE(Work::Between(before, Work::Record(left)), 1000);
  });
}

TEST(TimelineTest, GraphTakesTheTimeOfItsCapturedWork) {
  OnDevice(kVirtual, [] {
    Work work;
    CUstream stream = Work::Stream();
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    work.Launch(stream, 5);
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);  // captured, not run
    ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    CUevent before = work.Plug({stream});
    ASSERT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    EXPECT_FLOAT_EQ(Work::Between(before, Work::Record(stream)), 100);
  });
}

TEST(TimelineTest, RealClockMakesTheHostWait) {
  OnDevice({{"SIMCUDA_KERNEL_TIME", "20ms"}}, [] {
    Work work;
    CUstream stream = Work::Stream();
    auto start = std::chrono::steady_clock::now();
    work.Launch(stream, 2);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
  });
}

TEST(TimelineTest, OtherThreadsContinueWhileOneWaits) {
  OnDevice({{"SIMCUDA_KERNEL_TIME", "60000ms"}}, [] {
    // No call waits for the minute: the query and the allocation return at once.
    Work work;
    CUstream stream = Work::Stream();
    work.Launch(stream);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_SUCCESS);
  });
}

TEST(TimelineTest, WithoutDurationsEverythingIsDoneAtOnce) {
  OnDevice({}, [] {
    Work work;
    CUstream stream = Work::Stream();
    work.Launch(stream, 100);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
    EXPECT_TRUE(Finished(Work::Record(stream)));
  });
}

}  // namespace
}  // namespace sim
