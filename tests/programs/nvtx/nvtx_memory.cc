// Manages memory itself and reports it to NVTX with the calls of nvToolsExtMem.h.
// Usage: nvtx_memory SCENARIO
//
//   arena      a heap of 4 MiB in device memory whose regions are registered, resized, named and
//              unregistered
//   reset      regions that end with their heap's reset and unregistration
//   wide       regions in no heap, ended by a reset of the process-wide heap
//   pinned     regions in pinned memory and in host memory that CUDA does not know
//   handles    regions that are identified by their handles

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExtMem.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr size_t kMiB = 1 << 20;

char* Device(size_t size) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, size) != cudaSuccess) std::abort();
  return static_cast<char*>(memory);
}

nvtxMemHeapHandle_t NewHeap(nvtxDomainHandle_t domain, const char* start, size_t size,
                            const char* name) {
  const nvtxMemVirtualRangeDesc_t range = {size, start};
  nvtxMemHeapDesc_t desc = {};
  desc.extCompatID = NVTX_EXT_COMPATID_MEM;
  desc.structSize = sizeof(desc);
  desc.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  desc.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  desc.typeSpecificDescSize = sizeof(range);
  desc.typeSpecificDesc = &range;
  desc.messageType = NVTX_MESSAGE_TYPE_ASCII;
  desc.message.ascii = name;
  return nvtxMemHeapRegister(domain, &desc);
}

std::vector<nvtxMemRegionHandle_t> Register(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap,
                                            const std::vector<nvtxMemVirtualRangeDesc_t>& ranges) {
  std::vector<nvtxMemRegionHandle_t> handles(ranges.size());
  nvtxMemRegionsRegisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.heap = heap;
  batch.regionCount = ranges.size();
  batch.regionDescElementSize = sizeof(ranges[0]);
  batch.regionDescElements = ranges.data();
  batch.regionHandleElementsOut = handles.data();
  nvtxMemRegionsRegister(domain, &batch);
  return handles;
}

void Resize(nvtxDomainHandle_t domain, const char* start, size_t size) {
  const nvtxMemVirtualRangeDesc_t range = {size, start};
  nvtxMemRegionsResizeBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.regionDescCount = 1;
  batch.regionDescElementSize = sizeof(range);
  batch.regionDescElements = &range;
  nvtxMemRegionsResize(domain, &batch);
}

void Unregister(nvtxDomainHandle_t domain, uint32_t type, nvtxMemRegionRef_t region) {
  nvtxMemRegionsUnregisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.refType = type;
  batch.refCount = 1;
  batch.refElementSize = sizeof(region);
  batch.refElements = &region;
  nvtxMemRegionsUnregister(domain, &batch);
}

void Name(nvtxDomainHandle_t domain, const char* start, const char* name) {
  nvtxMemRegionNameDesc_t desc = {};
  desc.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER;
  desc.region.pointer = start;
  desc.nameType = NVTX_MESSAGE_TYPE_ASCII;
  desc.name.ascii = name;
  nvtxMemRegionsNameBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionCount = 1;
  batch.regionElementSize = sizeof(desc);
  batch.regionElements = &desc;
  nvtxMemRegionsName(domain, &batch);
}

void UseArena(nvtxDomainHandle_t domain) {
  char* arena = Device(4 * kMiB);
  const nvtxMemHeapHandle_t heap = NewHeap(domain, arena, 4 * kMiB, "arena");
  if (reinterpret_cast<char*>(heap) != arena) std::abort();
  Register(domain, heap, {{kMiB, arena}, {kMiB / 2, arena + kMiB}});
  Name(domain, arena, "weights");
  Name(domain, arena + kMiB, "cache");
  Resize(domain, arena + kMiB, 2 * kMiB);
  Unregister(domain, NVTX_MEM_REGION_REF_TYPE_POINTER, {arena});
  Register(domain, heap, {{3 * kMiB / 2, arena + 3 * kMiB - kMiB / 2}});
}

void ResetHeaps(nvtxDomainHandle_t domain) {
  char* memory = Device(8 * kMiB);
  const nvtxMemHeapHandle_t one = NewHeap(domain, memory, 4 * kMiB, "one");
  const nvtxMemHeapHandle_t two = NewHeap(domain, memory + 4 * kMiB, 4 * kMiB, "two");
  Register(domain, one, {{kMiB, memory}, {kMiB, memory + kMiB}});
  Register(domain, two, {{kMiB, memory + 4 * kMiB}});
  nvtxMemHeapReset(domain, one);
  Register(domain, one, {{2 * kMiB, memory}});
  nvtxMemHeapUnregister(domain, two);
}

void UseNoHeap(nvtxDomainHandle_t domain) {
  char* memory = Device(4 * kMiB);
  const nvtxMemHeapHandle_t heap = NewHeap(domain, memory, 2 * kMiB, "kept");
  Register(domain, heap, {{kMiB, memory}});
  Register(domain, NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE, {{kMiB, memory + 3 * kMiB}});
  nvtxMemHeapReset(domain, NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE);
}

void UsePinned(nvtxDomainHandle_t domain) {
  void* pinned = nullptr;
  if (cudaMallocHost(&pinned, kMiB) != cudaSuccess) std::abort();
  std::vector<char> plain(kMiB);
  Register(domain, NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE,
           {{kMiB / 2, pinned}, {kMiB / 2, plain.data()}});
}

void UseHandles(nvtxDomainHandle_t domain) {
  char* memory = Device(4 * kMiB);
  const nvtxMemHeapHandle_t heap = NewHeap(domain, memory, 4 * kMiB, "by handle");
  const auto handles = Register(domain, heap, {{kMiB, memory}, {kMiB, memory + kMiB}});
  nvtxMemRegionRef_t first;
  first.handle = handles[0];
  Unregister(domain, NVTX_MEM_REGION_REF_TYPE_HANDLE, first);
  nvtxMemHeapUnregister(domain, heap);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("memory of its own");
  if (scenario == "arena") {
    UseArena(domain);
  } else if (scenario == "reset") {
    ResetHeaps(domain);
  } else if (scenario == "wide") {
    UseNoHeap(domain);
  } else if (scenario == "pinned") {
    UsePinned(domain);
  } else if (scenario == "handles") {
    UseHandles(domain);
  } else {
    std::fprintf(stderr, "nvtx_memory: no such scenario: '%s'\n", scenario.c_str());
    return 2;
  }
  return 0;
}
