// Tests which memory of a backward pass is a gradient: with accumulation, recomputation, sharding,
// optimizers inside the pass, and compiled code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/categories/categories.h"
#include "analysis/testing/categories_fixture.h"

namespace gmt::analysis {
namespace {

TEST_F(CategoriesTest, GradientsOfAccumulationOutliveSeveralBackwardPasses) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int step = 0; step < 4; ++step) {
    for (int batch = 0; batch < 3; ++batch) {
      s_.Block(kActivation, kOtherBytes, s_.InForward());
      s_.Backward([&] {
        s_.Block(batch == 0 ? kGradient : kTemporary, kWeightBytes, s_.InBackward("MmBackward0"));
        if (batch > 0) s_.Free(kTemporary);
        s_.Free(kActivation);
      });
    }
    s_.Optimizer([&] {
      if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
    });
    s_.Free(kGradient);
  }
  EXPECT_EQ(Of(kGradient, 1), Category::kGradients);
  EXPECT_EQ(Of(kTemporary, 1), Category::kTemporaries);
  EXPECT_EQ(Of(kActivation, 4), Category::kActivations);
}

TEST_F(CategoriesTest, RecomputedMemoryIsNeitherGradientNorActivation) {
  const uint32_t nested =
      s_.Stack({{"at::native::mm(at::Tensor const&)"},
                {"torch::autograd::Engine::evaluate_function(int)"},
                {"CheckpointFunction.backward", s_.Torch("utils/checkpoint.py")},
                {"torch::autograd::Engine::evaluate_function(int)"}});
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int step = 0; step < 4; ++step) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kTemporary, kOtherBytes, s_.Recomputed());
      s_.Block(kGradient, kWeightBytes, nested);
      s_.Free(kTemporary);
      s_.Free(kActivation);
    });
    s_.Optimizer([&] {
      if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
    });
    s_.Free(kGradient);
  }
  EXPECT_EQ(Of(kTemporary, 2), Category::kRecomputed);
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
}

TEST_F(CategoriesTest, GathersOfShardedModelsAreCommunicationAndShardsOfGradientsAreGradients) {
  const uint32_t gather = s_.Stack(
      {{"at::empty(long)"},
       {"foreach_all_gather", s_.Torch("distributed/fsdp/_fully_shard/_fsdp_collectives.py")},
       {"FSDPParamGroup.unshard", s_.Torch("distributed/fsdp/_fully_shard/_fsdp_param_group.py")},
       {"Module._call_impl", s_.Torch("nn/modules/module.py")}});
  const uint32_t reduce =
      s_.Stack({{"at::empty(long)"},
                {"foreach_reduce", s_.Torch("distributed/fsdp/_fully_shard/_fsdp_collectives.py")},
                {"torch::autograd::Engine::evaluate_function(int)"}});
  s_.Block(kParameter, kWeightBytes / 8, s_.Parameter());
  for (int step = 0; step < 4; ++step) {
    s_.Block(0x80000, kWeightBytes, gather);
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(0x90000, kWeightBytes, reduce);
      s_.Block(kGradient, kWeightBytes / 8, reduce);
      s_.Free(0x90000);
      s_.Free(0x80000);
      s_.Free(kActivation);
    });
    s_.Optimizer([&] {
      if (step == 0) s_.Block(kState, kWeightBytes / 8, s_.State());
    });
    s_.Free(kGradient);
  }
  EXPECT_EQ(Of(0x80000, 1), Category::kCommunication);
  EXPECT_EQ(Of(0x90000, 1), Category::kCommunication);
  EXPECT_EQ(Of(kGradient, 1), Category::kGradients);
}

TEST_F(CategoriesTest, OptimizerInTheBackwardPassFreesGradientsThere) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int step = 0; step < 4; ++step) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kTemporary, kOtherBytes, s_.InBackward("GeluBackward0"));
      s_.Block(kGradient, kWeightBytes, s_.InBackward("MmBackward0"));
      s_.Optimizer([&] {
        if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
        s_.Block(0x70000, 512, s_.InOptimizer("_single_tensor_adam", "at::add"));
        s_.Free(0x70000);
      });
      s_.Free(kGradient);
      s_.Free(kTemporary);
      s_.Free(kActivation);
    });
  }
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kTemporary, 2), Category::kTemporaries);
  EXPECT_EQ(Of(kState), Category::kOptimizerState);
}

TEST_F(CategoriesTest, WithRolesSizesMakeNoGradientsOfTemporariesThatOutliveAnOptimizerInThePass) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.script().Role(kParameter, format::kRoleParameter);
  for (int step = 0; step < 4; ++step) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kTemporary, kWeightBytes, s_.InBackward("GeluBackward0"));
      s_.Block(kGradient, kWeightBytes, s_.InBackward("MmBackward0"));
      s_.script().Role(kGradient, format::kRoleGradient);
      s_.Optimizer([&] {
        if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
      });
      s_.Free(kGradient);
      s_.Free(kTemporary);
      s_.Free(kActivation);
    });
  }
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kTemporary, 2), Category::kTemporaries);
}

TEST_F(CategoriesTest, OptimizerInTheBackwardPassMayAllocateNothing) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int step = 0; step < 4; ++step) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kTemporary, kOtherBytes, s_.InBackward("GeluBackward0"));
      s_.Block(kGradient, kWeightBytes, s_.InBackward("MmBackward0"));
      s_.Optimizer([&] {
        if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
      });
      s_.Free(kGradient);
      s_.Free(kTemporary);
      s_.Free(kActivation);
    });
  }
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kTemporary, 2), Category::kTemporaries);
}

TEST_F(CategoriesTest, CompiledCodeHasNoNamesAndIsClassifiedByLives) {
  const uint32_t forward = s_.Stack({{"at::detail::empty_strided_cuda(long)"},
                                     {"call", "/tmp/torchinductor/ab/cabc.py"},
                                     {"main", "/src/train.py"}});
  const uint32_t backward = s_.Stack({{"at::detail::empty_strided_cuda(long)"},
                                      {"call", "/tmp/torchinductor/cd/cdef.py"},
                                      {"torch::autograd::Engine::evaluate_function(int)"}});
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int step = 0; step < 4; ++step) {
    s_.Block(kTemporary, kOtherBytes, forward);
    s_.Block(kActivation, kOtherBytes, forward);
    s_.Free(kTemporary);
    s_.Backward([&] {
      s_.Block(kTemporary, kOtherBytes, backward);
      s_.Block(kGradient, kWeightBytes, backward);
      s_.Free(kTemporary);
      s_.Free(kActivation);
    });
    s_.Optimizer([&] {
      if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
    });
    s_.Free(kGradient);
  }
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kTemporary, 4), Category::kTemporaries);
  EXPECT_EQ(Of(kTemporary, 5), Category::kTemporaries);
}

TEST_F(CategoriesTest, GradientsThatAreSetToZeroStayGradients) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int step = 0; step < 6; ++step) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(step == 0 ? kGradient : kTemporary, kWeightBytes, s_.InBackward("MmBackward0"));
      if (step > 0) s_.Free(kTemporary);
      s_.Free(kActivation);
    });
    s_.Optimizer([&] {
      if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
    });
  }
  EXPECT_EQ(Of(kGradient), Category::kGradients);
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kState), Category::kOptimizerState);
  EXPECT_EQ(Of(kTemporary, 2), Category::kTemporaries);
}

TEST_F(CategoriesTest, TwoOptimizersHaveTheirOwnGradientsAndStates) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.Block(kParameter + 0x8000, kOtherBytes, s_.Parameter());
  for (int step = 0; step < 5; ++step) {
    for (const uint64_t at : {0x0u, 0x8000u}) {
      const uint64_t bytes = at == 0 ? kWeightBytes : kOtherBytes;
      s_.Block(kActivation, kBatchBytes, s_.InForward());
      s_.Backward([&] {
        s_.Block(kGradient + at, bytes, s_.InBackward("MmBackward0"));
        s_.Free(kActivation);
      });
      s_.Optimizer([&] {
        if (step == 0) s_.Block(kState + at, bytes, s_.State());
      });
      s_.Free(kGradient + at);
    }
  }
  for (const uint64_t at : {0x0u, 0x8000u}) {
    EXPECT_EQ(Of(kGradient + at, 2), Category::kGradients);
    EXPECT_EQ(Of(kState + at), Category::kOptimizerState);
  }
  EXPECT_EQ(Of(kActivation, 5), Category::kActivations);
}

}  // namespace
}  // namespace gmt::analysis
