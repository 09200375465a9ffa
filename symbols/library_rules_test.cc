#include "symbols/library_rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace gmt::symbols {
namespace {

std::string_view Library(const char* module, const char* function = "f") {
  return LibraryRules::BuiltIn().LibraryOf({.function = function, .module = module});
}

TEST(LibraryRulesTest, BuiltInRulesAreThoseOfTheFile) {
  std::ifstream file(std::string(GMT_SYMBOLS_SOURCE) + "/library_rules.txt");
  std::stringstream text;
  text << file.rdbuf();
  const auto parsed = LibraryRules::Parse(text.str(), "library_rules.txt");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_GT(parsed->size(), 20u);
  EXPECT_EQ(LibraryRules::BuiltIn().size(), parsed->size());
}

TEST(LibraryRulesTest, LibrariesAreRecognizedByFileName) {
  EXPECT_EQ(Library("/x/site-packages/nvidia/nccl/lib/libnccl.so.2"), "NCCL");
  EXPECT_EQ(Library("/usr/lib/libcublas.so.12"), "cuBLAS");
  EXPECT_EQ(Library("/usr/lib/libcublasLt.so.13"), "cuBLASLt");
  EXPECT_EQ(Library("/x/nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9"), "cuDNN");
  EXPECT_EQ(Library("/x/libcusolver.so.11"), "cuSOLVER");
  EXPECT_EQ(Library("/x/libcusparseLt.so.0"), "cuSPARSELt");
  EXPECT_EQ(Library("/x/torch/lib/libc10_cuda.so"), "PyTorch's caching allocator");
}

TEST(LibraryRulesTest, AllocatorInsideAnotherFileIsRecognizedByItsFunctions) {
  EXPECT_EQ(Library("/x/all-in-one", "c10::cuda::CUDACachingAllocator::Native::malloc(void**)"),
            "PyTorch's caching allocator");
  EXPECT_EQ(
      Library("/x/libtorch_cuda.so",
              "torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator::malloc(unsigned long)"),
      "PyTorch's pluggable allocator");
}

TEST(LibraryRulesTest, RuntimeDriverAndProgramAreNotLibraries) {
  EXPECT_EQ(Library("/x/libcudart.so.12", "cudaMalloc"), "");
  EXPECT_EQ(Library("/x/libcuda.so.1", "cuMemCreate"), "");
  EXPECT_EQ(Library("/home/me/train"), "");
}

TEST(LibraryRulesTest, NameWithBlanksIsInQuotes) {
  const auto rules = LibraryRules::Parse("\"my pool\" module=libmine*\nother function=g\n", "mine");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->LibraryOf({.module = "/x/libmine.so"}), "my pool");
  EXPECT_EQ(rules->LibraryOf({.function = "g"}), "other");
}

TEST(LibraryRulesTest, InvalidLineIsReportedWithItsNumber) {
  const auto rules = LibraryRules::Parse("# mine\nNCCL modul=libnccl*\n", "mine");
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.status().message().find("mine:2: 'modul'"), absl::string_view::npos)
      << rules.status();
}

}  // namespace
}  // namespace gmt::symbols
