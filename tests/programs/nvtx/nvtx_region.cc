// A library that registers a named region with NVTX's memory extension, for calls through ctypes.

#include <nvtx3/nvToolsExtMem.h>

extern "C" __attribute__((visibility("default"))) void RegisterRegion(const void* start,
                                                                      size_t size,
                                                                      const char* name) {
  const nvtxMemVirtualRangeDesc_t range = {size, start};
  nvtxMemRegionsRegisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.heap = NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE;
  batch.regionCount = 1;
  batch.regionDescElementSize = sizeof(range);
  batch.regionDescElements = &range;
  nvtxMemRegionsRegister(nullptr, &batch);
  nvtxMemRegionNameDesc_t named = {};
  named.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER;
  named.region.pointer = start;
  named.nameType = NVTX_MESSAGE_TYPE_ASCII;
  named.name.ascii = name;
  nvtxMemRegionsNameBatch_t names = {};
  names.extCompatID = NVTX_EXT_COMPATID_MEM;
  names.structSize = sizeof(names);
  names.regionCount = 1;
  names.regionElementSize = sizeof(named);
  names.regionElements = &named;
  nvtxMemRegionsName(nullptr, &names);
}
