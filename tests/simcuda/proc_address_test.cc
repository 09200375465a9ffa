#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/simcuda/on_device.h"

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char* name, void** function, int version,
                                     cuuint64_t flags);

namespace sim {
namespace {

void* Find(const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CUresult result = cuGetProcAddress_v2(name, &function, version, flags, &status);
  EXPECT_EQ(result == CUDA_SUCCESS, status == CU_GET_PROC_ADDRESS_SUCCESS) << name;
  return function;
}

void* Exported(const char* symbol) { return dlsym(RTLD_DEFAULT, symbol); }

TEST(ProcAddressTest, PlainNameReturnsTheNewestFormOfTheCallersVersion) {
  EXPECT_EQ(Find("cuMemAlloc", 13000), Exported("cuMemAlloc_v2"));
  EXPECT_EQ(Find("cuMemAlloc", 3010), Exported("cuMemAlloc"));
  EXPECT_EQ(Find("cuIpcOpenMemHandle", 10020), Exported("cuIpcOpenMemHandle"));
  EXPECT_EQ(Find("cuIpcOpenMemHandle", 11000), Exported("cuIpcOpenMemHandle_v2"));
  EXPECT_EQ(Find("cuGraphAddNode", 12020), Exported("cuGraphAddNode"));
  EXPECT_EQ(Find("cuGraphAddNode", 12030), Exported("cuGraphAddNode_v2"));
  EXPECT_EQ(Find("cuCtxCreate", 11000), Exported("cuCtxCreate_v2"));
  EXPECT_EQ(Find("cuCtxCreate", 11040), Exported("cuCtxCreate_v3"));
  EXPECT_EQ(Find("cuCtxCreate", 13000), Exported("cuCtxCreate_v4"));
}

TEST(ProcAddressTest, ReturnsItselfInTheAbiOfTheCallersVersion) {
  EXPECT_EQ(Find("cuGetProcAddress", 11030), Exported("cuGetProcAddress"));
  EXPECT_EQ(Find("cuGetProcAddress", 12000), Exported("cuGetProcAddress_v2"));
  EXPECT_NE(Exported("cuGetProcAddress"), Exported("cuGetProcAddress_v2"));
}

TEST(ProcAddressTest, FourArgumentFormReturnsTheSame) {
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress("cuMemFree", &function, 11030, 0), CUDA_SUCCESS);
  EXPECT_EQ(function, Exported("cuMemFree_v2"));
  EXPECT_EQ(cuGetProcAddress("cuNoSuchThing", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
}

TEST(ProcAddressTest, VersionBeforeTheFunctionIsNotSufficient) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(cuGetProcAddress_v2("cuMemCreate", &function, 10010, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(cuGetProcAddress_v2("cuNothing", &function, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST(ProcAddressTest, SuffixedNameIsUnknown) { EXPECT_EQ(Find("cuMemAlloc_v2", 13000), nullptr); }

TEST(ProcAddressTest, PerThreadFlagSelectsTheOtherForm) {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(Find("cuMemAllocAsync", 13000), Exported("cuMemAllocAsync"));
  EXPECT_EQ(Find("cuMemAllocAsync", 13000, 1), Exported("cuMemAllocAsync"));
  EXPECT_EQ(Find("cuMemAllocAsync", 13000, kPerThread), Exported("cuMemAllocAsync_ptsz"));
  EXPECT_EQ(Find("cuMemAlloc", 13000, kPerThread), Exported("cuMemAlloc_v2"));
  EXPECT_EQ(Find("cuMemcpyHtoD", 13000, kPerThread), Exported("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Find("cuGraphLaunch", 13000, kPerThread), Exported("cuGraphLaunch_ptsz"));
}

TEST(ProcAddressTest, EveryListedFunctionIsExportedUnderItsSymbol) {
#define SIM_ENTRY(name, since, symbol) EXPECT_EQ(Find(#name, since), Exported(#symbol)) << #symbol;
#define SIM_STREAM_ENTRY(name, since, symbol, per_thread)      \
  EXPECT_EQ(Find(#name, since), Exported(#symbol)) << #symbol; \
  EXPECT_EQ(Find(#name, since, 2), Exported(#per_thread)) << #per_thread;
#include "tests/simcuda/driver/functions.inc"
#undef SIM_ENTRY
#undef SIM_STREAM_ENTRY
}

// The versions at which functions changed their form according to cudaTypedefs.h.
std::map<std::string, std::set<int>> VersionsOfTheHeader() {
  std::ifstream file(SIMCUDA_HEADERS "/cudaTypedefs.h");
  EXPECT_TRUE(file);
  std::map<std::string, std::set<int>> versions;
  const std::regex typedef_of("PFN_(cu\\w+?)_v(\\d+)\\)");
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, typedef_of)) continue;
    int version = std::stoi(match[2]);
    if (version <= 13000) versions[match[1]].insert(version);
  }
  return versions;
}

TEST(ProcAddressTest, VersionsMatchTheHeader) {
  std::map<std::string, std::set<int>> ours;
#define SIM_ENTRY(name, since, symbol) ours[#name].insert(since);
#define SIM_STREAM_ENTRY(name, since, symbol, per_thread) ours[#name].insert(since);
#include "tests/simcuda/driver/functions.inc"
#undef SIM_ENTRY
#undef SIM_STREAM_ENTRY
  ours["cuGraphInstantiate"].erase(12000);  // by a macro of cuda.h only
  std::map<std::string, std::set<int>> theirs = VersionsOfTheHeader();
  for (auto& [name, versions] : ours) {
    if (theirs.contains(name)) EXPECT_EQ(versions, theirs[name]) << name;
  }
}

}  // namespace
}  // namespace sim
