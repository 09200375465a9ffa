// Checks that each library exports every name of its list, so that programs can link to it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace sim {
namespace {

class NamesTest : public testing::TestWithParam<const char*> {};

TEST_P(NamesTest, EveryNameOfTheListIsExported) {
  std::string library = GetParam();
  void* handle = dlopen((SIMCUDA_LIBRARIES "/" + library).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  std::ifstream list(SIMCUDA_NAMES "/" + library + ".txt");
  int names = 0;
  for (std::string name; std::getline(list, name); ++names) {
    EXPECT_NE(dlsym(handle, name.c_str()), nullptr) << name;
  }
  EXPECT_GT(names, 20);
}

INSTANTIATE_TEST_SUITE_P(Libraries, NamesTest,
                         testing::Values("libcudart.so.13", "libcudart.so.12", "libcublas.so.13",
                                         "libcublas.so.12", "libcublasLt.so.13",
                                         "libcublasLt.so.12", "libcudnn.so.9", "libcupti.so.13",
                                         "libcupti.so.12", "libnccl.so.2"),
                         [](auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace sim
