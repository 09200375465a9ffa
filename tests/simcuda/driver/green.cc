// Green contexts: a part of a device's multiprocessors with its own context. Memory allocated in
// one belongs to the primary context, which the green context keeps active.
#include "tests/simcuda/simulator.h"

struct CUdevResourceDesc_st {
  CUdevResource resource;
};

namespace {

using sim::Call;
using sim::CallGroup;
using sim::Simulator;

constexpr unsigned int kMultiprocessors = 108;

CUresult Resource(CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *resource = {};
  resource->type = type;
  resource->sm.smCount = kMultiprocessors;
  return Simulator::Ready();
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  return Resource(resource, type);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx, CUdevResource* resource, CUdevResourceType type) {
  return Resource(resource, type);
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources,
                                   unsigned int count) {
  if (description == nullptr || resources == nullptr || count != 1) return CUDA_ERROR_INVALID_VALUE;
  // Descriptors live as long as their device: no call destroys them.
  *description = new CUdevResourceDesc_st{resources[0]};
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device,
                          unsigned int flags) {
  if (context == nullptr || description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUcontext primary = nullptr;
  CUresult result = cuDevicePrimaryCtxRetain(&primary, device);
  if (result != CUDA_SUCCESS) return result;
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    *context =
        new CUgreenCtx_st{{.id = 0, .device = device, .active = true, .memory_context = primary}};
    (*context)->context.id = simulator.next_context_id++;
    simulator.green_contexts.insert(*context);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  CUdevice device = 0;
  CUresult result = Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (simulator.green_contexts.erase(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
    device = context->context.device;
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? cuDevicePrimaryCtxRelease_v2(device) : result;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (context == nullptr || !simulator.green_contexts.contains(green)) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    *context = &green->context;
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned int flags,
                                int priority) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (!simulator.green_contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *stream = simulator.AddStream(&context->context, flags, priority);
    return CUDA_SUCCESS;
  });
}
