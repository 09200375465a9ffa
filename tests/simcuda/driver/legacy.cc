// Older forms of functions, which the driver still exports and returns to callers that request an
// old version, and hints for managed memory.
#include "tests/simcuda/jump.h"
#include "tests/simcuda/simulator.h"

// Device addresses had 32 bits before CUDA 3.2. In newer contexts, the only ones here, these forms
// only return an error, whatever their parameters.
extern "C" __attribute__((visibility("hidden"), used)) CUresult SimWrongKindOfContext() {
  CUresult ready = sim::Simulator::Ready();
  return ready == CUDA_SUCCESS ? CUDA_ERROR_INVALID_CONTEXT : ready;
}
SIM_JUMP(cuArray3DCreate, SimWrongKindOfContext)
SIM_JUMP(cuArray3DGetDescriptor, SimWrongKindOfContext)
SIM_JUMP(cuArrayCreate, SimWrongKindOfContext)
SIM_JUMP(cuArrayGetDescriptor, SimWrongKindOfContext)
SIM_JUMP(cuDeviceTotalMem, SimWrongKindOfContext)
SIM_JUMP(cuGraphicsResourceGetMappedPointer, SimWrongKindOfContext)
SIM_JUMP(cuMemAlloc, SimWrongKindOfContext)
SIM_JUMP(cuMemAllocPitch, SimWrongKindOfContext)
SIM_JUMP(cuMemFree, SimWrongKindOfContext)
SIM_JUMP(cuMemGetAddressRange, SimWrongKindOfContext)
SIM_JUMP(cuMemGetInfo, SimWrongKindOfContext)
SIM_JUMP(cuMemHostGetDevicePointer, SimWrongKindOfContext)
SIM_JUMP(cuMemcpy2D, SimWrongKindOfContext)
SIM_JUMP(cuMemcpy2DAsync, SimWrongKindOfContext)
SIM_JUMP(cuMemcpy2DUnaligned, SimWrongKindOfContext)
SIM_JUMP(cuMemcpyDtoD, SimWrongKindOfContext)
SIM_JUMP(cuMemcpyDtoDAsync, SimWrongKindOfContext)
SIM_JUMP(cuMemcpyDtoH, SimWrongKindOfContext)
SIM_JUMP(cuMemcpyDtoHAsync, SimWrongKindOfContext)
SIM_JUMP(cuMemcpyHtoD, SimWrongKindOfContext)
SIM_JUMP(cuMemcpyHtoDAsync, SimWrongKindOfContext)
SIM_JUMP(cuMemsetD16, SimWrongKindOfContext)
SIM_JUMP(cuMemsetD32, SimWrongKindOfContext)
SIM_JUMP(cuMemsetD8, SimWrongKindOfContext)
SIM_JUMP(cuModuleGetGlobal, SimWrongKindOfContext)

// The differences to the newer form of these do not matter here.
SIM_JUMP(cuCtxPopCurrent, cuCtxPopCurrent_v2)
SIM_JUMP(cuCtxPushCurrent, cuCtxPushCurrent_v2)
SIM_JUMP(cuDeviceGetUuid, cuDeviceGetUuid_v2)
SIM_JUMP(cuEventDestroy, cuEventDestroy_v2)
SIM_JUMP(cuEventElapsedTime, cuEventElapsedTime_v2)
SIM_JUMP(cuLinkAddData, cuLinkAddData_v2)
SIM_JUMP(cuLinkAddFile, cuLinkAddFile_v2)
SIM_JUMP(cuLinkCreate, cuLinkCreate_v2)
SIM_JUMP(cuStreamBeginCapture, cuStreamBeginCapture_v2)
SIM_JUMP(cuStreamDestroy, cuStreamDestroy_v2)
SIM_JUMP(cuStreamBatchMemOp, cuStreamBatchMemOp_v2)
SIM_JUMP(cuStreamWaitValue32, cuStreamWaitValue32_v2)
SIM_JUMP(cuStreamWaitValue64, cuStreamWaitValue64_v2)
SIM_JUMP(cuStreamWriteValue32, cuStreamWriteValue32_v2)
SIM_JUMP(cuStreamWriteValue64, cuStreamWriteValue64_v2)

// The older parameters are a prefix of the newer ones. The newer ones add a kernel of a library,
// which is read only if there is no function.
SIM_JUMP(cuGraphAddKernelNode, cuGraphAddKernelNode_v2)
SIM_JUMP(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2)

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}

namespace {

// Residency of managed memory is not simulated: a hint only requires that the memory exists.
CUresult Hint(const char* name, CUdeviceptr address, size_t size) {
  return sim::Call(name, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    sim::Region region;
    return simulator.FindRange(address, size, &region) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

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
