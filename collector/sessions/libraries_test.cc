#include "collector/sessions/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class LibrariesTest : public ::testing::Test {
 protected:
  LibrariesTest() {
    char path[] = "/tmp/gmt-libraries-XXXXXX";
    root_ = mkdtemp(path);
  }
  ~LibrariesTest() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text = "") {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void Folder(const std::string& path) { std::filesystem::create_directories(root_ + path); }
  Libraries Find(const std::vector<std::string>& mapped) { return FindLibraries(mapped, root_); }

  std::string root_;
};

TEST_F(LibrariesTest, DriverHasItsVersionInItsName) {
  EXPECT_THAT(Find({"/usr/lib/libcuda.so.580.65.06"}),
              ElementsAre(Pair("cuda_driver", "580.65.06")));
  EXPECT_THAT(Find({"/usr/lib/libcuda.so.1"}), IsEmpty());
}

TEST_F(LibrariesTest, RuntimeOfAToolkitHasItsVersionInItsName) {
  EXPECT_THAT(Find({"/usr/local/cuda/lib64/libcudart.so.12.4.127"}),
              ElementsAre(Pair("cuda_runtime", "12.4.127")));
}

TEST_F(LibrariesTest, RuntimeOfAWheelHasTheVersionOfTheWheel) {
  Folder("/venv/lib/python3.11/site-packages/nvidia_cuda_runtime-13.0.96.dist-info");
  EXPECT_THAT(Find({"/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13"}),
              ElementsAre(Pair("cuda_runtime", "13.0.96")));
}

TEST_F(LibrariesTest, OtherRuntimeHasOnlyItsMajorVersion) {
  EXPECT_THAT(Find({"/opt/app/libcudart.so.13"}), ElementsAre(Pair("cuda_runtime", "13")));
}

TEST_F(LibrariesTest, TorchHasItsVersionInVersionPy) {
  File("/venv/lib/python3.11/site-packages/torch/version.py",
       "from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\n");
  EXPECT_THAT(Find({"/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so"}),
              ElementsAre(Pair("torch", "2.11.0+cu130")));
}

TEST_F(LibrariesTest, TorchWithoutVersionPyHasTheVersionOfItsWheel) {
  Folder("/venv/lib/python3.11/site-packages/torch-2.11.0.dist-info");
  EXPECT_THAT(Find({"/venv/lib/python3.11/site-packages/torch/lib/libc10.so"}),
              ElementsAre(Pair("torch", "2.11.0")));
}

TEST_F(LibrariesTest, PythonVersionComesFromItsHeadersOrItsName) {
  EXPECT_THAT(Find({"/usr/bin/python3.11"}), ElementsAre(Pair("python", "3.11")));
  EXPECT_THAT(Find({"/opt/lib/libpython3.14.so.1.0"}), ElementsAre(Pair("python", "3.14")));
  File("/usr/include/python3.11/patchlevel.h", "#define PY_VERSION      \t\"3.11.2\"\n");
  EXPECT_THAT(Find({"/usr/bin/python3.11"}), ElementsAre(Pair("python", "3.11.2")));
}

TEST_F(LibrariesTest, FreeThreadedPythonIsRecognised) {
  EXPECT_THAT(Find({"/usr/bin/python3.13t"}), ElementsAre(Pair("python", "3.13")));
}

TEST_F(LibrariesTest, OtherFilesHaveNoVersion) {
  EXPECT_THAT(Find({"/usr/lib/libc.so.6", "/usr/bin/pythonista", "/x/libcudart_static.a", "/", ""}),
              IsEmpty());
}

TEST_F(LibrariesTest, TruncatedVersionFileYieldsNoVersion) {
  File("/p/torch/version.py", "__version__ = '2.1");
  EXPECT_THAT(Find({"/p/torch/lib/libtorch.so"}), IsEmpty());
}

TEST(MappedFilesTest, EachFileIsNamedOnce) {
  EXPECT_THAT(MappedFiles("55d0-55d1 r--p 00000000 08:01 17 /usr/bin/python3.11\n"
                          "55d1-55d2 r-xp 00001000 08:01 17 /usr/bin/python3.11\n"
                          "7f00-7f01 rw-p 00000000 00:00 0 \n"
                          "7f01-7f02 rw-p 00000000 00:00 0 [heap]\n"
                          "7f02-7f03 r--p 00000000 08:01 18 /tmp/with blank (deleted)\n"),
              ElementsAre("/tmp/with blank (deleted)", "/usr/bin/python3.11"));
  EXPECT_THAT(MappedFiles(""), IsEmpty());
}

TEST(FindLibrariesTest, ProcessThatIsGoneHasNoLibraries) {
  EXPECT_THAT(FindLibraries(uint64_t{1} << 40), IsEmpty());
}

}  // namespace
}  // namespace gmt::collector
