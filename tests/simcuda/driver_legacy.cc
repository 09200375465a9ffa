// Forms of functions from before device addresses had 64 bits (CUDA 3.1), and hints for managed
// memory. The driver still exports the old forms and answers to old versions with them; in contexts
// of today those with 32-bit device addresses do nothing but say so.
#include "tests/simcuda/simulator.h"

namespace {

// All contexts here are of the kind with 64-bit addresses.
CUresult WrongKindOfContext() {
  CUresult ready = sim::Simulator::Ready();
  return ready == CUDA_SUCCESS ? CUDA_ERROR_INVALID_CONTEXT : ready;
}

// Residency of managed memory is not simulated: a hint needs memory that it is about and no more.
CUresult Hint(const char* name, CUdeviceptr address, size_t size) {
  return sim::Call(name, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    sim::Region region;
    return simulator.FindRange(address, size, &region) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

CUresult cuMemAlloc(CUdeviceptr_v1*, unsigned int) { return WrongKindOfContext(); }
CUresult cuMemAllocPitch(CUdeviceptr_v1*, unsigned int*, unsigned int, unsigned int, unsigned int) {
  return WrongKindOfContext();
}
CUresult cuMemFree(CUdeviceptr_v1) { return WrongKindOfContext(); }
CUresult cuMemGetInfo(unsigned int*, unsigned int*) { return WrongKindOfContext(); }
CUresult cuMemGetAddressRange(CUdeviceptr_v1*, unsigned int*, CUdeviceptr_v1) {
  return WrongKindOfContext();
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1*, void*, unsigned int) {
  return WrongKindOfContext();
}
CUresult cuArrayCreate(CUarray*, const CUDA_ARRAY_DESCRIPTOR_v1*) { return WrongKindOfContext(); }
CUresult cuArray3DCreate(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR_v1*) {
  return WrongKindOfContext();
}
CUresult cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1*, unsigned int*, CUgraphicsResource) {
  return WrongKindOfContext();
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice, CUstream) {
  return Hint(__func__, address, size);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation, unsigned int,
                               CUstream) {
  return Hint(__func__, address, size);
}
CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise, CUdevice) {
  return Hint(__func__, address, size);
}
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise, CUmemLocation) {
  return Hint(__func__, address, size);
}
