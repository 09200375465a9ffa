#include <gtest/gtest.h>

#include <vector>

#include "tests/simcuda/math/cudnn_objects.h"
#include "tests/simcuda/on_device.h"

struct CudnnBackendDescriptor;
struct CudnnRnn;
struct cublasContext;

extern "C" {
int cublasCreate_v2(cublasContext** handle);
int cublasDestroy_v2(cublasContext* handle);
int cudnnCreate(cudnnContext** handle);
int cudnnDestroy(cudnnContext* handle);
int cudnnBackendCreateDescriptor(int kind, CudnnBackendDescriptor** descriptor);
int cudnnBackendDestroyDescriptor(CudnnBackendDescriptor* descriptor);
int cudnnBackendSetAttribute(CudnnBackendDescriptor* descriptor, int name, int type, int64_t count,
                             const void* array);
int cudnnBackendGetAttribute(const CudnnBackendDescriptor* descriptor, int name, int type,
                             int64_t asked, int64_t* returned, void* array);
int cudnnCreateRNNDescriptor(CudnnRnn** descriptor);
int cudnnSetRNNDescriptor_v8(CudnnRnn* rnn, int algorithm, int cell, int bias_mode,
                             int bidirectional, int input_mode, int data_type, int precision,
                             int math, int32_t input, int32_t hidden, int32_t projection,
                             int32_t layers, void* dropout, uint32_t flags);
int cudnnGetRNNWeightSpaceSize(cudnnContext* handle, const CudnnRnn* rnn, size_t* size);
int cudnnGetRNNWeightParams(cudnnContext* handle, const CudnnRnn* rnn, int32_t pseudo_layer,
                            size_t size, const void* weights, int32_t matrix,
                            sim::CudnnShape* matrix_shape, void** matrix_address,
                            sim::CudnnShape* bias_shape, void** bias_address);
int cudnnGetTensorNdDescriptor(const sim::CudnnShape* shape, int asked, int* data_type,
                               int* dimensions, int* extents, int* strides);
int cudnnCreateTensorDescriptor(sim::CudnnShape** shape);
}

namespace sim {
namespace {

constexpr int kFloat = 0, kLstm = 2, kDoubleBias = 2;
constexpr int kInt64 = 3, kDescriptor = 15;
constexpr int kEngineConfig = 3, kHeuristic = 4, kPlan = 5, kTensor = 17;
constexpr int kHeuristicResults = 202, kConfigEngine = 300, kPlanWorkspaceSize = 402;
constexpr int kTensorDimensions = 904;  // CUDNN_ATTR_TENSOR_DIMENSIONS

CudnnBackendDescriptor* Make(int kind) {
  CudnnBackendDescriptor* descriptor = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(kind, &descriptor), kCudnnSuccess);
  return descriptor;
}

TEST(CudnnTest, HandlesTakeTheConfiguredMemory) {
  OnDevice({{"SIMCUDA_HANDLE", "6M"}}, [] {
    uint64_t before = FreeMemory();
    cudnnContext* dnn = nullptr;
    cublasContext* blas = nullptr;
    ASSERT_EQ(cudnnCreate(&dnn), kCudnnSuccess);
    ASSERT_EQ(cublasCreate_v2(&blas), 0);
    EXPECT_EQ(FreeMemory(), before - 12 * kMiB);
    cudnnDestroy(dnn);
    cublasDestroy_v2(blas);
    EXPECT_EQ(FreeMemory(), before);
  });
}

TEST(CudnnTest, HandlesTakeNothingByDefault) {
  OnDevice({{"SIMCUDA_MEMORY", "2M"}}, [] {
    CUdeviceptr all = 0;
    ASSERT_EQ(cuMemAlloc(&all, 2 * kMiB), CUDA_SUCCESS);
    cudnnContext* dnn = nullptr;
    EXPECT_EQ(cudnnCreate(&dnn), kCudnnSuccess);
  });
}

TEST(CudnnTest, HandleOnAFullDeviceIsRefused) {
  OnDevice({{"SIMCUDA_HANDLE", "6M"}, {"SIMCUDA_MEMORY", "4M"}}, [] {
    cudnnContext* dnn = nullptr;
    cublasContext* blas = nullptr;
    EXPECT_EQ(cudnnCreate(&dnn), kCudnnAllocationFailed);
    EXPECT_EQ(cublasCreate_v2(&blas), 3);  // CUBLAS_STATUS_ALLOC_FAILED
  });
}

TEST(CudnnTest, AttributesAreReturnedAsSet) {
  CudnnBackendDescriptor* tensor = Make(kTensor);
  int64_t count = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(tensor, kTensorDimensions, kInt64, 4, &count, nullptr),
            kCudnnSuccess);
  EXPECT_EQ(count, 0);
  std::vector<int64_t> set = {8, 3, 32, 31}, got(4);
  cudnnBackendSetAttribute(tensor, kTensorDimensions, kInt64, 4, set.data());
  EXPECT_EQ(cudnnBackendGetAttribute(tensor, kTensorDimensions, kInt64, 4, &count, got.data()),
            kCudnnSuccess);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(got, set);
  EXPECT_EQ(cudnnBackendGetAttribute(tensor, kTensorDimensions, 1, 4, &count, got.data()),
            kCudnnBadParameter);
  cudnnBackendDestroyDescriptor(tensor);
}

TEST(CudnnTest, HeuristicFindsOneEngineWhosePlanNeedsTheWorkspace) {
  OnDevice({{"SIMCUDA_WORKSPACE", "3M"}}, [] {
    CudnnBackendDescriptor *heuristic = Make(kHeuristic), *config = Make(kEngineConfig);
    CudnnBackendDescriptor *plan = Make(kPlan), *engine = Make(2);
    int64_t count = 0, workspace = 0;
    cudnnBackendGetAttribute(heuristic, kHeuristicResults, kDescriptor, 0, &count, nullptr);
    EXPECT_EQ(count, 1);
    cudnnBackendGetAttribute(heuristic, kHeuristicResults, kDescriptor, 1, &count, &config);
    cudnnBackendGetAttribute(config, kConfigEngine, kDescriptor, 1, &count, &engine);
    EXPECT_EQ(count, 1);
    cudnnBackendGetAttribute(plan, kPlanWorkspaceSize, kInt64, 1, &count, &workspace);
    EXPECT_EQ(workspace, 3 << 20);
  });
}

// A bidirectional LSTM with two layers, 3 inputs and 5 states. Each pseudo-layer has 4 matrices for
// the input, then 4 for the state; all biases follow all matrices.
class RnnTest : public testing::Test {
 protected:
  RnnTest() {
    cudnnCreateRNNDescriptor(&rnn_);
    cudnnSetRNNDescriptor_v8(rnn_, 0, kLstm, kDoubleBias, 1, 0, kFloat, kFloat, 0, 3, 5, 0, 2,
                             nullptr, 0);
    cudnnCreateTensorDescriptor(&shape_);
  }

  // Returns the number of floats before a matrix or a bias.
  int64_t Matrix(int layer, int index) { return At(layer, index, true); }
  int64_t Bias(int layer, int index) { return At(layer, index, false); }

  CudnnRnn* rnn_ = nullptr;
  CudnnShape* shape_ = nullptr;

 private:
  int64_t At(int layer, int index, bool matrix) {
    auto* weights = reinterpret_cast<float*>(uintptr_t{1} << 40);
    void* address = nullptr;
    int result = matrix ? cudnnGetRNNWeightParams(nullptr, rnn_, layer, 0, weights, index, shape_,
                                                  &address, nullptr, nullptr)
                        : cudnnGetRNNWeightParams(nullptr, rnn_, layer, 0, weights, index, nullptr,
                                                  nullptr, shape_, &address);
    EXPECT_EQ(result, kCudnnSuccess);
    return static_cast<float*>(address) - weights;
  }
};

TEST_F(RnnTest, MatricesOfALayerFollowEachOther) {
  EXPECT_EQ(Matrix(0, 0), 0);
  EXPECT_EQ(Matrix(0, 3), 3 * 5 * 3);
  EXPECT_EQ(Matrix(0, 4), 4 * 5 * 3);
  EXPECT_EQ(Matrix(1, 0), 4 * 5 * 3 + 4 * 5 * 5);
  EXPECT_EQ(Matrix(2, 1), 2 * (4 * 5 * 3 + 4 * 5 * 5) + 5 * 10);  // fed by both directions
}

TEST_F(RnnTest, ShapeOfAMatrixIsThatOfItsColumns) {
  Matrix(2, 0);
  int type = -1, dimensions = 0, extents[3] = {}, strides[3] = {};
  cudnnGetTensorNdDescriptor(shape_, 3, &type, &dimensions, extents, strides);
  EXPECT_EQ(dimensions, 3);
  EXPECT_EQ(extents[0] * extents[1] * extents[2], 5 * 10);
  EXPECT_EQ(strides[1], 10);
}

TEST_F(RnnTest, BiasesFollowAllMatricesAndEndTheBuffer) {
  int64_t matrices = 2 * (4 * 5 * 3 + 4 * 5 * 5) + 2 * (4 * 5 * 10 + 4 * 5 * 5);
  EXPECT_EQ(Bias(0, 0), matrices);
  EXPECT_EQ(Bias(3, 7), matrices + 31 * 5);
  size_t bytes = 0;
  cudnnGetRNNWeightSpaceSize(nullptr, rnn_, &bytes);
  EXPECT_EQ(bytes, (matrices + 32 * 5) * sizeof(float));
}

TEST_F(RnnTest, MissingMatrixHasNoAddress) {
  void* address = this;
  EXPECT_EQ(
      cudnnGetRNNWeightParams(nullptr, rnn_, 0, 0, nullptr, 8, shape_, &address, nullptr, nullptr),
      kCudnnSuccess);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(
      cudnnGetRNNWeightParams(nullptr, rnn_, 4, 0, nullptr, 0, shape_, &address, nullptr, nullptr),
      kCudnnBadParameter);
}

}  // namespace
}  // namespace sim
