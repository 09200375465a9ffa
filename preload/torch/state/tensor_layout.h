// preload/torch/state/tensor_layout.h
//
// Describes the tensor for which PyTorch requests a block: its type, sizes and bytes
// (session::TensorLayout).
//
// Thread safety: pure functions.

#ifndef GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_
#define GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_

#include <stdint.h>

#include "session/layout.h"

namespace gmt::preload {

// A tensor as PyTorch's functions receive it. Does not own the arrays.
struct TensorRequest {
  int8_t dtype;            // at::ScalarType
  const int64_t* sizes;    // one for each dimension
  const int64_t* strides;  // likewise, in elements; nullptr for a dense tensor
  uint64_t dimensions;
};

// Returns false if the tensor would have no bytes or its type is unknown.
bool DescribeTensor(const TensorRequest& request, session::TensorLayout* layout);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_
