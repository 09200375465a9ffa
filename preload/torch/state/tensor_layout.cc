#include "preload/torch/state/tensor_layout.h"

namespace gmt::preload {
namespace {

// Bytes of an element, by at::ScalarType (c10/core/ScalarType.h, PyTorch 2.11; the order is part of
// the file format of saved tensors). 0: unknown.
constexpr uint8_t kItemBytes[] = {
    1, 1, 2,  4, 8, 2, 4, 8,  // Byte, Char, Short, Int, Long, Half, Float, Double
    4, 8, 16, 1,              // ComplexHalf, ComplexFloat, ComplexDouble, Bool
    1, 1, 4,  2,              // QInt8, QUInt8, QInt32, BFloat16
    1, 1, 1,  1, 1, 1, 2,     // QUInt4x2, QUInt2x4, Bits1x8, Bits2x4, Bits4x2, Bits8, Bits16
    1, 1, 1,  1, 2, 4, 8,     // Float8_e5m2, _e4m3fn, _e5m2fnuz, _e4m3fnuz, UInt16, UInt32, UInt64
    1, 1, 1,  1, 1, 1, 1,     // UInt1 to UInt7
    1, 1, 1,  1, 1, 1, 1,     // Int1 to Int7
    1, 1,                     // Float8_e8m0fnu, Float4_e2m1fn_x2
};

}  // namespace

bool DescribeTensor(const TensorRequest& request, session::TensorLayout* layout) {
  const auto dtype = static_cast<uint64_t>(request.dtype);
  if (dtype >= sizeof(kItemBytes)) return false;
  uint64_t elements = 1;
  *layout = {};
  for (uint64_t i = 0; i < request.dimensions; ++i) {
    const auto size = static_cast<uint64_t>(request.sizes[i]);
    if (size == 0) return false;
    if (request.strides == nullptr) {
      elements *= size;
    } else {
      elements += (size - 1) * static_cast<uint64_t>(request.strides[i]);
    }
    if (i < session::kLayoutDimensions) layout->sizes[i] = request.sizes[i];
  }
  layout->bytes = elements * kItemBytes[dtype];
  layout->dtype = static_cast<uint8_t>(dtype);
  layout->dimension = static_cast<uint8_t>(request.dimensions < 255 ? request.dimensions : 255);
  return true;
}

}  // namespace gmt::preload
