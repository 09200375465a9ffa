// Allocates and frees known sizes step by step and prints the use that the driver and NVML report
// after each step, which shows how much device memory a request takes.
//
// Usage: memory_steps
// Prints one JSON line:
//   {"total", "steps": [{"what", "asked", "free", "nvml_used", "process"}, ...]}
// `asked` is negative for a free. `free` is the result of cuMemGetInfo after the step; 0 before
// there is a context. `nvml_used` is the use of the device, `process` that of this process alone;
// -1 if NVML is absent or does not report it. Exits with 1 if a CUDA call failed.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvml.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr size_t kMib = 1 << 20;
constexpr int kSmall = 1024;  // allocations of ManySmall()

void Require(int result, const char* call) {
  if (result == 0) return;
  std::fprintf(stderr, "memory_steps: %s: %d\n", call, result);
  std::exit(1);
}
#define REQUIRE(...) Require((__VA_ARGS__), #__VA_ARGS__)

// Queries NVML about CUDA's device 0, which is identified by its PCI bus ID.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    if (library_ == nullptr) return;
    auto init = Find<decltype(&nvmlInit_v2)>("nvmlInit_v2");
    memory_ = Find<decltype(memory_)>("nvmlDeviceGetMemoryInfo");
    processes_ = Find<decltype(processes_)>("nvmlDeviceGetComputeRunningProcesses_v3");
    auto by_index = Find<decltype(&nvmlDeviceGetHandleByIndex_v2)>("nvmlDeviceGetHandleByIndex_v2");
    works_ = init != nullptr && memory_ != nullptr && by_index != nullptr &&
             init() == NVML_SUCCESS && by_index(0, &device_) == NVML_SUCCESS;
  }

  // Until this is called, queries are about NVML's device 0.
  void FindDevice(CUdevice device) {
    char bus[32] = {};
    auto by_bus =
        Find<decltype(&nvmlDeviceGetHandleByPciBusId_v2)>("nvmlDeviceGetHandleByPciBusId_v2");
    nvmlDevice_t found = nullptr;
    if (works_ && by_bus != nullptr && cuDeviceGetPCIBusId(bus, sizeof(bus), device) == 0 &&
        by_bus(bus, &found) == NVML_SUCCESS) {
      device_ = found;
    }
  }

  int64_t Used() const {
    nvmlMemory_t memory = {};
    if (!works_ || memory_(device_, &memory) != NVML_SUCCESS) return -1;
    return static_cast<int64_t>(memory.used);
  }

  int64_t UsedByThisProcess() const {
    unsigned int count = 256;
    std::vector<nvmlProcessInfo_t> all(count);
    if (!works_ || processes_ == nullptr ||
        processes_(device_, &count, all.data()) != NVML_SUCCESS) {
      return -1;
    }
    for (unsigned int n = 0; n < count; ++n) {
      const unsigned long long bytes = all[n].usedGpuMemory;
      if (static_cast<int>(all[n].pid) == getpid() && bytes != ~0ULL) {
        return static_cast<int64_t>(bytes);
      }
    }
    return -1;
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_;
  bool works_ = false;
  nvmlDevice_t device_ = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory_ = nullptr;
  decltype(&nvmlDeviceGetComputeRunningProcesses_v3) processes_ = nullptr;
};

Nvml nvml;
bool has_context = false;
const char* separator = "";

void Say(const std::string& what, int64_t asked) {
  size_t free = 0, total = 0;
  if (has_context) REQUIRE(cuMemGetInfo(&free, &total));
  std::printf(
      "%s{\"what\": \"%s\", \"asked\": %lld, \"free\": %zu, \"nvml_used\": %lld, "
      "\"process\": %lld}",
      separator, what.c_str(), static_cast<long long>(asked), free,
      static_cast<long long>(nvml.Used()), static_cast<long long>(nvml.UsedByThisProcess()));
  separator = ", ";
}

int64_t Negative(size_t size) { return -static_cast<int64_t>(size); }

void Linear() {
  const size_t sizes[] = {1,          2 * kMib, 2 * kMib + 1, 3 * kMib, 20 * kMib, 100 * kMib + 1,
                          512 * kMib, kMib,     17 * kMib / 2};
  std::vector<std::pair<void*, size_t>> live;
  for (size_t size : sizes) {
    void* pointer = nullptr;
    REQUIRE(cudaMalloc(&pointer, size));
    live.emplace_back(pointer, size);
    Say("cudaMalloc", static_cast<int64_t>(size));
  }
  for (auto [pointer, size] : live) {
    REQUIRE(cudaFree(pointer));
    Say("cudaFree", Negative(size));
  }
}

void ManySmall() {
  std::vector<void*> live(kSmall);
  for (void*& pointer : live) REQUIRE(cudaMalloc(&pointer, 4096));
  Say("small cudaMalloc", kSmall * 4096);
  for (void* pointer : live) REQUIRE(cudaFree(pointer));
  Say("small cudaFree", -kSmall * 4096);
}

void Virtual() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t page = 0;
  REQUIRE(cuMemGetAllocationGranularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  REQUIRE(cuMemCreate(&handle, 3 * page, &properties, 0));
  Say("cuMemCreate", static_cast<int64_t>(3 * page));
  REQUIRE(cuMemAddressReserve(&address, 3 * page, 0, 0, 0));
  REQUIRE(cuMemMap(address, 3 * page, 0, handle, 0));
  Say("cuMemMap", 0);
  REQUIRE(cuMemUnmap(address, 3 * page));
  REQUIRE(cuMemAddressFree(address, 3 * page));
  REQUIRE(cuMemRelease(handle));
  Say("cuMemRelease", Negative(3 * page));
}

void Pools() {
  void *small = nullptr, *large = nullptr;
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaMallocAsync(&small, 70001, nullptr));
  Say("cudaMallocAsync", 70001);
  REQUIRE(cudaMallocAsync(&large, 50 * kMib, nullptr));
  Say("cudaMallocAsync", 50 * kMib);
  REQUIRE(cudaFreeAsync(large, nullptr));
  REQUIRE(cudaFreeAsync(small, nullptr));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0));
  REQUIRE(cudaMemPoolTrimTo(pool, 0));
  Say("cudaFreeAsync, synchronised and trimmed", Negative(70001 + 50 * kMib));
}

void Elsewhere() {
  void *pinned = nullptr, *managed = nullptr;
  REQUIRE(cudaHostAlloc(&pinned, 64 * kMib, 0));
  Say("cudaHostAlloc", 64 * kMib);
  REQUIRE(cudaMallocManaged(&managed, 64 * kMib, cudaMemAttachGlobal));
  Say("cudaMallocManaged", 64 * kMib);
  REQUIRE(cudaFree(managed));
  REQUIRE(cudaFreeHost(pinned));
  Say("cudaFree and cudaFreeHost", Negative(128 * kMib));
}

}  // namespace

int main() {
  std::printf("{\"steps\": [");
  Say("start", 0);
  REQUIRE(cudaFree(nullptr));
  has_context = true;
  nvml.FindDevice(0);
  Say("context", 0);
  Linear();
  ManySmall();
  Virtual();
  Pools();
  Elsewhere();
  Say("end", 0);
  size_t free = 0, total = 0;
  REQUIRE(cuMemGetInfo(&free, &total));
  std::printf("], \"total\": %zu}\n", total);
  return 0;
}
