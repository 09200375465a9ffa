#include "tests/simcuda/log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "simcuda_log_" + std::to_string(getpid());
    std::remove(path_.c_str());
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::vector<std::string> Lines() const {
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static bool Has(const std::string& line, const std::string& part) {
    return line.find(part) != std::string::npos;
  }

  std::string path_;
};

TEST_F(LogTest, LinesAreInTheOrderOfTheEffects) {
  OnDevice({{"SIMCUDA_LOG", path_}}, [] {
    CUdeviceptr address = 0;
    cuMemAlloc(&address, 1000);
    cuMemFree(address);
  });
  std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(Has(lines[0], "\"call\":\"cuDevicePrimaryCtxRetain\",\"address\":0,")) << lines[0];
  EXPECT_TRUE(Has(lines[1], "{\"seq\":1,")) << lines[1];
  EXPECT_TRUE(Has(lines[1], "\"call\":\"cuMemAlloc_v2\",\"address\":52776558133248,\"size\":1000"));
  EXPECT_TRUE(Has(lines[2], "{\"seq\":2,")) << lines[2];
  EXPECT_TRUE(Has(lines[2], "\"call\":\"cuMemFree_v2\",\"address\":52776558133248,\"size\":1000"));
  EXPECT_TRUE(Has(lines[2], "\"result\":0}"));
}

TEST_F(LogTest, StreamCallsAreLoggedOnRequestWithTheirCompletionTime) {
  auto body = [] {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr address = 0;
    cuModuleLoadData(&module, "");
    cuModuleGetFunction(&kernel, module, "kernel");
    cuStreamCreate(&stream, 0);
    cuMemAllocAsync(&address, 100, stream);
    cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
    cuMemFreeAsync(address, stream);
    cuStreamSynchronize(stream);
  };
  std::map<std::string, std::string> settings = {
      {"SIMCUDA_LOG", path_}, {"SIMCUDA_KERNEL_TIME", "1000ms"}, {"SIMCUDA_CLOCK", "virtual"}};
  OnDevice(settings, body);
  EXPECT_EQ(Lines().size(), 3u);
  EXPECT_FALSE(Has(Lines()[2], "done_ns")) << Lines()[2];
  std::remove(path_.c_str());
  settings["SIMCUDA_LOG_STREAMS"] = "1";
  OnDevice(settings, body);
  std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 6u);
  const char* calls[] = {"cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuMemAllocAsync",
                         "cuLaunchKernel",           "cuMemFreeAsync", "cuStreamSynchronize"};
  std::vector<uint64_t> asked, done;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(Has(lines[i], "\"call\":\"" + std::string(calls[i]) + "\"")) << lines[i];
    asked.push_back(std::stoull(lines[i].substr(lines[i].find("\"t_ns\":") + 7)));
    done.push_back(std::stoull(lines[i].substr(lines[i].find("\"done_ns\":") + 10)));
  }
  EXPECT_GE(done[3], asked[2] + 1'000'000'000);
  EXPECT_EQ(done[4], done[3]);  // the memory is in use until the kernel has ended
  EXPECT_EQ(done[5], done[3]);
  EXPECT_LT(asked[4], done[4]);
  EXPECT_GE(asked[5], done[5]);
}

TEST_F(LogTest, FailedAndInjectedCallsAreLoggedWithTheirCode) {
  OnDevice(
      {{"SIMCUDA_LOG", path_}, {"SIMCUDA_MEMORY", "4M"}, {"SIMCUDA_FAIL", "cuMemAlloc_v2:2=3"}},
      [] {
        CUdeviceptr address = 0;
        cuMemAlloc(&address, 8 * kMiB);
        cuMemAlloc(&address, 77);
        cuMemFree(99);
      });
  std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(Has(lines[1], "\"result\":2}")) << lines[1];
  EXPECT_TRUE(Has(lines[2], "\"size\":77,")) << lines[2];
  EXPECT_TRUE(Has(lines[2], "\"result\":3}")) << lines[2];
  EXPECT_TRUE(Has(lines[3], "\"address\":99,")) << lines[3];
  EXPECT_TRUE(Has(lines[3], "\"result\":1}")) << lines[3];
}

TEST_F(LogTest, EndOfAContextLogsWhatItFreesAndThenItself) {
  OnDevice({{"SIMCUDA_LOG", path_}}, [] {
    CUdeviceptr address = 0;
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR descriptor = {16, 16, CU_AD_FORMAT_FLOAT, 4};
    ASSERT_EQ(cuMemAlloc(&address, 1000), CUDA_SUCCESS);
    ASSERT_EQ(cuArrayCreate(&array, &descriptor), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  });
  std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 6u);
  const std::string reset = "\"call\":\"cuDevicePrimaryCtxReset_v2\",\"address\":";
  EXPECT_TRUE(Has(lines[3], reset + "52776558133248,\"size\":1000,")) << lines[3];
  EXPECT_TRUE(Has(lines[4], reset)) << lines[4];
  EXPECT_TRUE(Has(lines[4], "\"size\":4096,")) << lines[4];
  EXPECT_TRUE(Has(lines[5], reset + "0,\"size\":0,")) << lines[5];
}

TEST_F(LogTest, KilledProcessLeavesCompleteLines) {
  pid_t child = fork();
  if (child == 0) {
    Log log(path_);
    for (int i = 0; i < 100; ++i) log.Write("cuMemAlloc_v2", {.size = 1}, 0);
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(Lines().size(), 100u);
}

TEST_F(LogTest, ThreadsShareOneSequenceWithoutGaps) {
  OnDevice({{"SIMCUDA_LOG", path_}}, [] {
    CUcontext context = nullptr;
    cuCtxGetCurrent(&context);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([context] {
        cuCtxSetCurrent(context);
        for (int j = 0; j < 100; ++j) {
          CUdeviceptr address = 0;
          cuMemAlloc(&address, 4096);
          cuMemFree(address);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 801u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(Has(lines[i], "{\"seq\":" + std::to_string(i) + ",")) << lines[i];
  }
}

TEST_F(LogTest, PathContainsTheProcessId) {
  pid_t child = fork();
  if (child == 0) {
    Log log(path_ + ".%p");
    log.Write("cuMemAlloc_v2", {}, 0);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  std::string named = path_ + "." + std::to_string(child);
  EXPECT_EQ(std::remove(named.c_str()), 0);
}

}  // namespace
}  // namespace sim
