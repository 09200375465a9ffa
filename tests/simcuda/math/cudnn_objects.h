// Shared by the files of the cuDNN stand-in. cuDNN's headers are not available to the build;
// numbers and signatures are those of cuDNN 9.19 (cudnn_graph_v9.h, cudnn_ops_v9.h, cudnn_cnn_v9.h,
// cudnn_adv_v9.h). Enumerations are passed as int.
#ifndef TESTS_SIMCUDA_CUDNN_OBJECTS_H_
#define TESTS_SIMCUDA_CUDNN_OBJECTS_H_

#include <cstddef>
#include <cstdint>

#include "tests/simcuda/math/library_memory.h"
#include "tests/simcuda/math/math_launch.h"

namespace sim {

inline constexpr int kCudnnSuccess = 0;
inline constexpr int kCudnnBadParameter = 2000;
inline constexpr int kCudnnAllocationFailed = 4002;  // ..._INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
inline constexpr int kCudnnExecutionFailed = 5000;

inline constexpr int kCudnnMaxDimensions = 8;

// Tensor and filter descriptors; descriptors of other kinds are never read.
struct CudnnShape {
  int data_type = 0;
  int format = 0;
  int dimensions = 0;
  int extents[kCudnnMaxDimensions] = {};
  int strides[kCudnnMaxDimensions] = {};
};

// Bytes of one element of a cudnnDataType_t.
size_t CudnnTypeSize(int data_type);

}  // namespace sim

struct cudnnContext {
  cudaStream_t stream = nullptr;
  sim::HandleMemory memory;

  int Launch() const {
    bool done = sim::LaunchMathKernel(stream) == CUDA_SUCCESS;
    return done ? sim::kCudnnSuccess : sim::kCudnnExecutionFailed;
  }
};

#endif  // TESTS_SIMCUDA_CUDNN_OBJECTS_H_
