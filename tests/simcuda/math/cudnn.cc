// A stand-in for cuDNN: handles and descriptors are kept, every operation is one empty kernel on
// the handle's stream, and a workspace has SIMCUDA_WORKSPACE bytes. Operations take the handle
// first, so a single function serves those that are not implemented separately (CMakeLists.txt,
// "stubs").
//
// Callers may pass null for results that they do not need.
#include <algorithm>

#include "tests/simcuda/math/cudnn_objects.h"

namespace {

using sim::CudnnShape;
using sim::kCudnnBadParameter;
using sim::kCudnnSuccess;

constexpr int kMajor = 9, kMinor = 19, kPatch = 0;
constexpr size_t kDropoutStates = size_t{256} << 10;  // arbitrary

// cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t: one layout, part of the library's ABI.
struct AlgorithmResult {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int determinism;
  int math_type;
  int reserved[3];
};
static_assert(sizeof(AlgorithmResult) == 48);

template <typename T>
int Store(T* result, T value) {
  if (result != nullptr) *result = value;
  return kCudnnSuccess;
}

int StoreWorkspace(size_t* size) { return Store<size_t>(size, sim::LibrarySettings().workspace); }

// Every convolution has exactly one algorithm.
int TellAlgorithm(int asked, int* returned, AlgorithmResult* results) {
  if (asked < 1 || results == nullptr) return kCudnnBadParameter;
  results[0] = {.time = 1.0f, .memory = sim::LibrarySettings().workspace, .determinism = 1};
  return Store(returned, 1);
}

int SetShape(CudnnShape* shape, int data_type, int format, int dimensions, const int* extents,
             const int* strides) {
  if (shape == nullptr || dimensions < 0 || dimensions > sim::kCudnnMaxDimensions) {
    return kCudnnBadParameter;
  }
  *shape = {.data_type = data_type, .format = format, .dimensions = dimensions};
  std::copy_n(extents, dimensions, shape->extents);
  if (strides != nullptr) std::copy_n(strides, dimensions, shape->strides);
  return kCudnnSuccess;
}

int GetShape(const CudnnShape* shape, int asked, int* data_type, int* dimensions, int* extents) {
  if (shape == nullptr || asked < 0) return kCudnnBadParameter;
  Store(data_type, shape->data_type);
  Store(dimensions, shape->dimensions);
  if (extents != nullptr) std::copy_n(shape->extents, std::min(asked, shape->dimensions), extents);
  return kCudnnSuccess;
}

}  // namespace

size_t sim::CudnnTypeSize(int data_type) {
  switch (data_type) {
    case 1:   // double
    case 10:  // int64
      return 8;
    case 2:  // half
    case 9:  // bfloat16
      return 2;
    case 3:   // int8
    case 6:   // uint8
    case 11:  // bool
      return 1;
    default:
      return 4;
  }
}

#pragma GCC visibility push(default)
extern "C" {

size_t cudnnGetVersion() { return kMajor * 10000 + kMinor * 100 + kPatch; }
size_t cudnnGetCudartVersion() { return 13000; }

int cudnnGetProperty(int type, int* value) {
  return Store(value, type == 0 ? kMajor : type == 1 ? kMinor : kPatch);
}

const char* cudnnGetErrorString(int status) {
  return status == kCudnnSuccess ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_EXECUTION_FAILED";
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (size > 0) *message = '\0';
}

int cudnnCreate(cudnnContext** handle) {
  if (handle == nullptr) return kCudnnBadParameter;
  auto* made = new cudnnContext;
  if (!made->memory.Allocate()) {
    delete made;
    return sim::kCudnnAllocationFailed;
  }
  *handle = made;
  return kCudnnSuccess;
}

int cudnnDestroy(cudnnContext* handle) {
  delete handle;
  return kCudnnSuccess;
}

int cudnnSetStream(cudnnContext* handle, cudaStream_t stream) {
  if (handle == nullptr) return kCudnnBadParameter;
  handle->stream = stream;
  return kCudnnSuccess;
}

int cudnnGetStream(cudnnContext* handle, cudaStream_t* stream) {
  return handle == nullptr ? kCudnnBadParameter : Store(stream, handle->stream);
}

#define SIM_DESCRIPTOR(kind)                                   \
  int cudnnCreate##kind##Descriptor(CudnnShape** descriptor) { \
    *descriptor = new CudnnShape;                              \
    return kCudnnSuccess;                                      \
  }                                                            \
  int cudnnDestroy##kind##Descriptor(CudnnShape* descriptor) { \
    delete descriptor;                                         \
    return kCudnnSuccess;                                      \
  }
SIM_DESCRIPTOR(Tensor)
SIM_DESCRIPTOR(Filter)
SIM_DESCRIPTOR(Convolution)
SIM_DESCRIPTOR(Pooling)
SIM_DESCRIPTOR(Activation)
SIM_DESCRIPTOR(Dropout)
SIM_DESCRIPTOR(RNNData)
SIM_DESCRIPTOR(SpatialTransformer)
SIM_DESCRIPTOR(CTCLoss)
SIM_DESCRIPTOR(OpTensor)
SIM_DESCRIPTOR(ReduceTensor)
SIM_DESCRIPTOR(LRN)
SIM_DESCRIPTOR(SeqData)
SIM_DESCRIPTOR(Attn)
SIM_DESCRIPTOR(TensorTransform)
#undef SIM_DESCRIPTOR

int cudnnSetTensorNdDescriptor(CudnnShape* shape, int data_type, int dimensions, const int* extents,
                               const int* strides) {
  return SetShape(shape, data_type, 0, dimensions, extents, strides);
}

int cudnnGetTensorNdDescriptor(const CudnnShape* shape, int asked, int* data_type, int* dimensions,
                               int* extents, int* strides) {
  int result = GetShape(shape, asked, data_type, dimensions, extents);
  if (result != kCudnnSuccess || strides == nullptr) return result;
  std::copy_n(shape->strides, std::min(asked, shape->dimensions), strides);
  return kCudnnSuccess;
}

int cudnnSetFilterNdDescriptor(CudnnShape* shape, int data_type, int format, int dimensions,
                               const int* extents) {
  return SetShape(shape, data_type, format, dimensions, extents, nullptr);
}

int cudnnGetFilterNdDescriptor(const CudnnShape* shape, int asked, int* data_type, int* format,
                               int* dimensions, int* extents) {
  int result = GetShape(shape, asked, data_type, dimensions, extents);
  return result == kCudnnSuccess ? Store(format, shape->format) : result;
}

int cudnnDropoutGetStatesSize(cudnnContext*, size_t* size) { return Store(size, kDropoutStates); }
int cudnnDropoutGetReserveSpaceSize(CudnnShape*, size_t* size) { return Store<size_t>(size, 0); }

int cudnnGetConvolutionForwardWorkspaceSize(cudnnContext*, void*, void*, void*, void*, int,
                                            size_t* size) {
  return StoreWorkspace(size);
}

int cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnContext*, void*, void*, void*, void*, int,
                                                 size_t* size) {
  return StoreWorkspace(size);
}

int cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnContext*, void*, void*, void*, void*, int,
                                                   size_t* size) {
  return StoreWorkspace(size);
}

#define SIM_ALGORITHM(direction)                                                              \
  int cudnnGetConvolution##direction##Algorithm_v7(cudnnContext*, void*, void*, void*, void*, \
                                                   int asked, int* returned,                  \
                                                   AlgorithmResult* results) {                \
    return TellAlgorithm(asked, returned, results);                                           \
  }                                                                                           \
  int cudnnFindConvolution##direction##AlgorithmEx(                                           \
      cudnnContext*, void*, const void*, void*, const void*, void*, void*, void*, int asked,  \
      int* returned, AlgorithmResult* results, void*, size_t) {                               \
    return TellAlgorithm(asked, returned, results);                                           \
  }
SIM_ALGORITHM(Forward)
SIM_ALGORITHM(BackwardData)
SIM_ALGORITHM(BackwardFilter)
#undef SIM_ALGORITHM

int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(cudnnContext*, int, int, void*, void*,
                                                             void*, void*, void*, size_t* size) {
  return StoreWorkspace(size);
}

int cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnContext*, int, int, void*, void*, void*,
                                                      void*, void*, void*, void*, size_t* size) {
  return StoreWorkspace(size);
}

int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnContext*, int, int, void*, void*,
                                                         size_t* size) {
  return Store<size_t>(size, 0);
}

int cudnnGetCTCLossWorkspaceSize(cudnnContext*, void*, void*, const int*, const int*, const int*,
                                 int, void*, size_t* size) {
  return StoreWorkspace(size);
}

int cudnnGetCTCLossWorkspaceSize_v8(cudnnContext*, int, void*, void*, void*, size_t* size) {
  return StoreWorkspace(size);
}

int SimMathSuccess() { return kCudnnSuccess; }

int SimMathLaunch(cudnnContext* handle) {
  return handle == nullptr ? kCudnnBadParameter : handle->Launch();
}

}  // extern "C"
#pragma GCC visibility pop
