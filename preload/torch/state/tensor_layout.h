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

// `dtype`: at::ScalarType. `strides`: nullptr for a dense tensor. Returns false if the tensor would
// have no bytes or its type is unknown.
bool DescribeTensor(int8_t dtype, const int64_t* sizes, const int64_t* strides, uint64_t dimensions,
                    session::TensorLayout* layout);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_
