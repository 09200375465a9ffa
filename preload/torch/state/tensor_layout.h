// preload/torch/state/tensor_layout.h
//
// What PyTorch asks its allocator for a block for: the type, the sizes and the bytes of a tensor
// (session::TensorLayout).
//
// Thread safety: pure functions.

#ifndef GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_
#define GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_

#include <stdint.h>

#include "session/layout.h"

namespace gmt::preload {

// `dtype`: at::ScalarType. `strides`: nullptr for a dense tensor. False where it would have no bytes, or
// the type is not known.
bool DescribeTensor(int8_t dtype, const int64_t* sizes, const int64_t* strides, uint64_t dimensions,
                    session::TensorLayout* layout);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TENSOR_LAYOUT_H_
