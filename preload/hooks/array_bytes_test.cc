#include "preload/hooks/array_bytes.h"

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

CUDA_ARRAY3D_DESCRIPTOR Described(size_t width, size_t height, size_t depth, CUarray_format format,
                                  unsigned channels, unsigned flags = 0) {
  return {width, height, depth, format, channels, flags};
}

TEST(ArrayBytesTest, MissingDimensionsCountAsOne) {
  const CUDA_ARRAY_DESCRIPTOR line = {1000, 0, CU_AD_FORMAT_FLOAT, 4};
  EXPECT_EQ(ArrayBytes(&line), 16000u);
  const auto box = Described(10, 20, 30, CU_AD_FORMAT_HALF, 1);
  EXPECT_EQ(Array3DBytes(&box, 1), 12000u);
}

TEST(ArrayBytesTest, LevelsOfAMipmapHalveDownToOneTexel) {
  const auto mipmap = Described(8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
  EXPECT_EQ(Array3DBytes(&mipmap, 4), 32u + 8 + 2 + 1);
}

TEST(ArrayBytesTest, LayersOfAMipmapAreNotHalved) {
  const auto layered = Described(4, 4, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED);
  EXPECT_EQ(Array3DBytes(&layered, 2), (16u + 4) * 6);
}

TEST(ArrayBytesTest, SparseAndDeferredArraysHaveNoOwnMemory) {
  const auto sparse = Described(64, 64, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE);
  EXPECT_EQ(Array3DBytes(&sparse, 1), 0u);
  const auto deferred = Described(64, 64, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING);
  EXPECT_EQ(Array3DBytes(&deferred, 1), 0u);
}

TEST(ArrayBytesTest, RuntimeAndDriverAgreeOnFormats) {
  const cudaExtent extent = {64, 64, 0};
  const cudaChannelFormatDesc floats = {32, 32, 0, 0, cudaChannelFormatKindFloat};
  EXPECT_EQ(ArrayBytes(&floats, extent, 1, 0), 64u * 64 * 8);
  const cudaChannelFormatDesc bc7 = {8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed7};
  const auto driver_bc7 = Described(64, 64, 0, CU_AD_FORMAT_BC7_UNORM, 4);
  EXPECT_EQ(ArrayBytes(&bc7, extent, 1, 0), 64u * 64);
  EXPECT_EQ(ArrayBytes(&bc7, extent, 1, 0), Array3DBytes(&driver_bc7, 1));
  const cudaChannelFormatDesc bc1 = {8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed1};
  EXPECT_EQ(ArrayBytes(&bc1, extent, 1, 0), 64u * 64 / 2);
  const cudaChannelFormatDesc planar = {16, 16, 16, 0, cudaChannelFormatKindUnsigned16Planar444};
  const auto driver_planar = Described(64, 64, 0, CU_AD_FORMAT_UINT16_PLANAR_444, 3);
  EXPECT_EQ(ArrayBytes(&planar, extent, 1, 0), Array3DBytes(&driver_planar, 1));
}

TEST(ArrayBytesTest, NoDescriptionIsNoBytes) {
  EXPECT_EQ(Array3DBytes(static_cast<CUDA_ARRAY3D_DESCRIPTOR*>(nullptr), 1), 0u);
  EXPECT_EQ(ArrayBytes(nullptr, {1, 1, 1}, 1, 0), 0u);
}

}  // namespace
}  // namespace gmt::preload
