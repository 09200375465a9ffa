// preload/hooks/array_bytes.h
//
// Computes the size of an array from its description: texels times bits per texel, over all levels
// of a mipmap. The driver's own layout may take more, by an amount it does not disclose. 0 for
// sparse arrays and those whose memory is mapped later.
//
// Formats and their numbers: CUarray_format of cuda.h and cudaChannelFormatKind of driver_types.h,
// CUDA 13.

#ifndef GMT_PRELOAD_HOOKS_ARRAY_BYTES_H_
#define GMT_PRELOAD_HOOKS_ARRAY_BYTES_H_

#include <cuda.h>
#include <driver_types.h>
#include <stdint.h>

namespace gmt::preload {

// Returns the bytes of `levels` levels of an array of that extent, each half as big as the previous
// one in every direction (the number of layers of a layered array stays the same).
inline uint64_t LevelsBytes(cudaExtent extent, unsigned levels, unsigned flags, uint64_t bits) {
  constexpr unsigned kNoMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
  constexpr unsigned kLayers = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;
  if ((flags & kNoMemory) != 0) return 0;
  const auto at_least_one = [](uint64_t n) { return n == 0 ? 1 : n; };
  uint64_t total = 0;
  for (unsigned level = 0; level < levels && level < 64; ++level) {
    const uint64_t depth = (flags & kLayers) != 0 ? extent.depth : extent.depth >> level;
    total += at_least_one(extent.width >> level) * at_least_one(extent.height >> level) *
             at_least_one(depth) * bits / 8;
  }
  return total;
}

// Returns the bits of one texel, including all channels if the format defines their number.
inline uint64_t TexelBits(unsigned format, unsigned channels) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 8 * uint64_t{channels};
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 16 * uint64_t{channels};
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
      return 4;
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
      return 8;
    case CU_AD_FORMAT_NV12:
    case CU_AD_FORMAT_UINT8_SEMIPLANAR_420:
    case CU_AD_FORMAT_UINT8_PLANAR_420:
      return 12;
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_NV16:
    case CU_AD_FORMAT_YUY2:
    case CU_AD_FORMAT_UINT8_PACKED_422:
    case CU_AD_FORMAT_UINT8_SEMIPLANAR_422:
    case CU_AD_FORMAT_UINT8_PLANAR_422:
      return 16;
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
    case CU_AD_FORMAT_Y444_PLANAR8:
    case CU_AD_FORMAT_UINT16_SEMIPLANAR_420:
    case CU_AD_FORMAT_UINT16_PLANAR_420:
    case CU_AD_FORMAT_UINT8_SEMIPLANAR_444:
    case CU_AD_FORMAT_UINT8_PLANAR_444:
      return 24;
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT_101010_2:
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
    case CU_AD_FORMAT_Y210:
    case CU_AD_FORMAT_Y216:
    case CU_AD_FORMAT_AYUV:
    case CU_AD_FORMAT_Y410:
    case CU_AD_FORMAT_UINT8_PACKED_444:
    case CU_AD_FORMAT_UINT16_SEMIPLANAR_422:
    case CU_AD_FORMAT_UINT16_PLANAR_422:
      return 32;
    case CU_AD_FORMAT_Y444_PLANAR10:
    case CU_AD_FORMAT_UINT16_SEMIPLANAR_444:
    case CU_AD_FORMAT_UINT16_PLANAR_444:
      return 48;
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
    case CU_AD_FORMAT_Y416:
      return 64;
    default:
      break;
  }
  const bool compressed = format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
  return compressed ? 8 : 32 * uint64_t{channels};  // 32-bit integers and floats
}

template <typename Description>
uint64_t ArrayBytes(const Description* d) {
  return d == nullptr
             ? 0
             : LevelsBytes({d->Width, d->Height, 0}, 1, 0, TexelBits(d->Format, d->NumChannels));
}
template <typename Description>
uint64_t Array3DBytes(const Description* d, unsigned levels) {
  return d == nullptr ? 0
                      : LevelsBytes({d->Width, d->Height, d->Depth}, levels, d->Flags,
                                    TexelBits(d->Format, d->NumChannels));
}

inline uint64_t TexelBits(const cudaChannelFormatDesc& format) {
  const auto from = [&](int kind, unsigned as) {
    return TexelBits(as + static_cast<unsigned>(format.f - kind), 1);
  };
  if (format.f == cudaChannelFormatKindNV12) return TexelBits(CU_AD_FORMAT_NV12, 1);
  if (format.f >= cudaChannelFormatKindUnsignedBlockCompressed1 &&
      format.f <= cudaChannelFormatKindUnsignedBlockCompressed7SRGB) {
    return from(cudaChannelFormatKindUnsignedBlockCompressed1, CU_AD_FORMAT_BC1_UNORM);
  }
  if (format.f >= cudaChannelFormatKindUnsignedNormalized1010102) {
    return from(cudaChannelFormatKindUnsignedNormalized1010102, CU_AD_FORMAT_UNORM_INT_101010_2);
  }
  return static_cast<uint64_t>(format.x + format.y + format.z + format.w);
}

// The runtime's flags have the values of the driver's.
inline uint64_t ArrayBytes(const cudaChannelFormatDesc* format, cudaExtent extent, unsigned levels,
                           unsigned flags) {
  return format == nullptr ? 0 : LevelsBytes(extent, levels, flags, TexelBits(*format));
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_ARRAY_BYTES_H_
