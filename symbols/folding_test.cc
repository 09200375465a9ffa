#include "symbols/folding.h"

#include <gtest/gtest.h>

namespace gmt::symbols {
namespace {

TEST(Folding, CodeOfTheProgramAndOfLibrariesIsShown) {
  EXPECT_EQ(RoleOf("forward", "", "/home/me/model.py"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("at::native::empty_cuda(...)", "/x/libtorch_cuda.so", ""), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("", "/opt/app/bin/server", ""), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("", "", ""), FrameRole::kOwn);
}

TEST(Folding, ProfilerCudaAllocatorInterpreterAndStartAreNoise) {
  EXPECT_EQ(RoleOf("cudaMalloc", "/opt/lib/libgpumemtrace.so", ""), FrameRole::kProfiler);
  EXPECT_EQ(RoleOf("", "/usr/lib/libcuda.so.1", ""), FrameRole::kCuda);
  EXPECT_EQ(RoleOf("cudaMalloc", "/opt/app/static", ""), FrameRole::kCuda);
  EXPECT_EQ(RoleOf("c10::cuda::CUDACachingAllocator::Native::malloc(...)", "", ""),
            FrameRole::kAllocator);
  EXPECT_EQ(RoleOf("_PyEval_EvalFrameDefault", "/usr/bin/python3.11", ""), FrameRole::kInterpreter);
  EXPECT_EQ(RoleOf("_call_with_frames_removed", "", "<frozen importlib._bootstrap>"),
            FrameRole::kInterpreter);
  EXPECT_EQ(RoleOf("__libc_start_main", "/lib/libc.so.6", ""), FrameRole::kStart);
  EXPECT_EQ(RoleOf("_start", "/opt/app/server", ""), FrameRole::kStart);
}

TEST(Folding, ModuleIsJudgedByItsFileNameNotByItsFolder) {
  EXPECT_EQ(RoleOf("f", "/opt/libcuda.so.tests/libmodel.so", ""), FrameRole::kOwn);
}

TEST(Folding, EntryPointRuleTakesNoLongerNames) {
  EXPECT_EQ(RoleOf("_start_worker", "", ""), FrameRole::kOwn);
}

}  // namespace
}  // namespace gmt::symbols
