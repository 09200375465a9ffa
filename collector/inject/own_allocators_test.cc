#include "collector/inject/own_allocators.h"

#include <gtest/gtest.h>

#include <optional>

#include "collector/inject/testing/fake_image.h"
#include "collector/inject/testing/own_process.h"

namespace gmt::inject {
namespace {

using OwnAllocatorsTest = OwnProcess;

TEST_F(OwnAllocatorsTest, ProgramWithLibcAllocatorHasNone) {
  const OwnAllocators allocators = OwnAllocators::Find(*memory_, map_);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(allocators.any());
#else
  EXPECT_FALSE(allocators.any());
#endif
}

TEST_F(OwnAllocatorsTest, ImageThatExportsMallocIsOne) {
  const FakeImage image("malloc");
  const FakeImage other("calloc");
  const OwnAllocators allocators =
      OwnAllocators::Find(*memory_, {image.MappedFrom("/own"), other.MappedFrom("/other")});
  EXPECT_TRUE(allocators.Holds(image.MappedFrom("/own")));
  EXPECT_FALSE(allocators.Holds(other.MappedFrom("/other")));
  EXPECT_EQ(allocators.FunctionsAt(image.MappedFrom("/own"), image.function()).size(), 1u);
}

// A process with thousands of such images can only delay its inspection.
TEST_F(OwnAllocatorsTest, OnlyAFewImagesAreRead) {
  const FakeImage image("malloc");
  MemoryMap map;
  for (int i = 0; i < 1000; ++i) map.push_back(image.MappedFrom("/own" + std::to_string(i)));
  const OwnAllocators allocators = OwnAllocators::Find(*memory_, map);
  EXPECT_TRUE(allocators.Holds(map.front()));
  EXPECT_FALSE(allocators.Holds(map.back()));
}

}  // namespace
}  // namespace gmt::inject
