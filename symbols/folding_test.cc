#include "symbols/folding.h"

#include <gtest/gtest.h>

namespace gmt::symbols {
namespace {

TEST(Folding, CodeOfTheProgramAndOfLibrariesIsShown) {
  EXPECT_EQ(RoleOf("forward", "", "/home/me/model.py"), FrameRole::kOwn);
  EXPECT_EQ(RoleOf("at::native::linear(...)", "/x/libtorch_cuda.so", ""), FrameRole::kOwn);
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

TEST(Folding, OperatorIsShownAndTheWayToItsMemoryIsNot) {
  for (const char* function :
       {"at::detail::empty_cuda(c10::ArrayRef<long>, c10::TensorOptions const&)",
        "at::native::empty_strided_cuda(c10::ArrayRef<long>)",
        "at::(anonymous namespace)::(anonymous namespace)::wrapper_CUDA__empty_strided(...)",
        "at::(anonymous namespace)::structured_addmm_out_cuda_functional::set_output_raw_strided("
        "long)"}) {
    EXPECT_EQ(RoleOf(function, "", ""), FrameRole::kAllocator) << function;
  }
  EXPECT_EQ(RoleOf("c10::impl::wrap_kernel_functor_unboxed_<...>::call(...)", "", ""),
            FrameRole::kDispatcher);
  EXPECT_EQ(RoleOf("at::_ops::addmm::redispatch(...)", "", ""), FrameRole::kDispatcher);
  EXPECT_EQ(RoleOf("torch::autograd::VariableType::(anonymous namespace)::addmm(...)", "", ""),
            FrameRole::kDispatcher);
  EXPECT_EQ(RoleOf("at::(anonymous namespace)::wrapper_CUDA_nll_loss_backward(...)", "", ""),
            FrameRole::kDispatcher);
  EXPECT_EQ(RoleOf("at::_ops::addmm::call(...)", "", ""), FrameRole::kOwn);
}

TEST(Folding, ModuleIsJudgedByItsFileNameNotByItsFolder) {
  EXPECT_EQ(RoleOf("f", "/opt/libcuda.so.tests/libmodel.so", ""), FrameRole::kOwn);
}

TEST(Folding, EntryPointRuleTakesNoLongerNames) {
  EXPECT_EQ(RoleOf("_start_worker", "", ""), FrameRole::kOwn);
}

}  // namespace
}  // namespace gmt::symbols
