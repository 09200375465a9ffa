#include "preload/cupti/cupti_places.h"

#include <limits.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

using testing::ElementsAre;

std::vector<std::string> Places(const char* runtime, unsigned major) {
  std::vector<std::string> places;
  char path[PATH_MAX];
  for (int i = 0; PlaceBesideRuntime(runtime, major, i, path, sizeof(path)); ++i)
    places.push_back(path);
  return places;
}

TEST(CuptiPlacesTest, LooksWhereToolkitsAndPackagesInstallIt) {
  EXPECT_THAT(Places("/x/nvidia/cuda_runtime/lib/libcudart.so.12", 12),
              ElementsAre("/x/nvidia/cuda_runtime/lib/libcupti.so.12",
                          "/x/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12",
                          "/x/nvidia/cuda_runtime/lib/../../cupti/lib/libcupti.so.12",
                          "/x/nvidia/cuda_runtime/lib/../extras/CUPTI/lib64/libcupti.so.12",
                          "/x/nvidia/cuda_runtime/lib/../../../extras/CUPTI/lib64/libcupti.so.12"));
}

TEST(CuptiPlacesTest, RuntimeWithoutAPathHasNoLocations) {
  EXPECT_TRUE(Places("libcudart.so.12", 12).empty());
  EXPECT_TRUE(Places("", 13).empty());
}

TEST(CuptiPlacesTest, PathThatDoesNotFitIsNotTruncated) {
  char path[16];
  EXPECT_FALSE(PlaceBesideRuntime("/x/nvidia/libcudart.so.12", 12, 0, path, sizeof(path)));
}

TEST(CuptiPlacesTest, ReadsTheMajorVersionFromTheRuntimesName) {
  EXPECT_EQ(MajorOfRuntime("/x/libcudart.so.12"), 12u);
  EXPECT_EQ(MajorOfRuntime("libcudart.so.13.0.96"), 13u);
  EXPECT_EQ(MajorOfRuntime("/usr/bin/program"), 0u);
  EXPECT_EQ(MajorOfRuntime(""), 0u);
}

}  // namespace
}  // namespace gmt::preload
