// Contexts: the primary context of each device, contexts of cuCtxCreate, and each thread's stack of
// current contexts.
#include <algorithm>

#include "tests/simcuda/timeline.h"

namespace {

using sim::ApiCall;
using sim::Call;
using sim::CallGroup;
using sim::Device;
using sim::MemoryCall;
using sim::Record;
using sim::Simulator;

constexpr int kDeepestStack = 32;
thread_local CUcontext context_stack[kDeepestStack];
thread_local int context_depth = 0;

void SetCurrent(CUcontext context) {
  if (context_depth == 0) context_depth = 1;
  context_stack[context_depth - 1] = context;
}

// Notifies a tool that a context is about to end: the one returned by `context(simulator)` under
// the lock, which may be null.
template <typename Context>
void AnnounceEnd(Context context) {
  if (!sim::IsReported()) return;
  CUcontext ends = nullptr;
  {
    Simulator& simulator = Simulator::Get();
    std::lock_guard<std::mutex> lock(simulator.mutex);
    ends = context(simulator);
    if (ends == nullptr || !ends->active) return;
  }
  sim::DeliverNow(
      {.kind = sim::NoticeKind::kContextDestroyStarting, .context = ends, .device = ends->device});
}

// Ends a context and frees what it owns, in the name of `call`.
void Deactivate(Simulator& simulator, CUcontext context, const char* call) {
  if (!context->active) return;
  simulator.RemoveAllOf(context, call);
  simulator.device(context->device)
      ->budget()
      .Return(simulator.settings.context + context->tool_memory);
  context->tool_memory = 0;
  context->active = false;
  context->retained = 0;
}

CUresult Create(const char* name, CUcontext* context, unsigned int flags, CUdevice ordinal) {
  Record asked{.device = ordinal};
  return MemoryCall(name, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    if (simulator.device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (context_depth == kDeepestStack) return CUDA_ERROR_OUT_OF_MEMORY;
    auto created = new CUctx_st{.device = ordinal, .retained = 1, .flags = flags};
    if (CUresult result = sim::Activate(simulator, created); result != CUDA_SUCCESS) {
      delete created;
      return result;
    }
    simulator.contexts.insert(created);
    context_stack[context_depth++] = *context = created;
    record.handle = sim::Bits(created);
    return CUDA_SUCCESS;
  });
}

// The object of a destroyed context remains, because it may still be the current context of other
// threads.
CUresult Destroy(const char* name, CUcontext context) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  ApiCall call(name);
  AnnounceEnd([&](Simulator& simulator) {
    return simulator.contexts.contains(context) ? context : nullptr;
  });
  Record asked{.handle = sim::Bits(context)};
  return MemoryCall(name, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    if (simulator.contexts.erase(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
    record.device = context->device;
    Deactivate(simulator, context, name);
    if (sim::CurrentContext() == context) --context_depth;
    return CUDA_SUCCESS;
  });
}

// Runs `body` with the primary context of an existing device.
template <typename Body>
CUresult WithPrimary(const char* name, CUdevice ordinal, Body body) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return body(simulator, device->primary());
  });
}

// The same for a call that creates or ends the context, which is logged.
template <typename Body>
CUresult ChangePrimary(const char* name, CUdevice ordinal, Body body) {
  Record asked{.device = ordinal};
  return MemoryCall(name, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    record.handle = sim::Bits(&device->primary());
    return body(simulator, record, device->primary());
  });
}

CUresult Release(const char* name, CUdevice ordinal) {
  ApiCall call(name);
  AnnounceEnd([&](Simulator& simulator) -> CUcontext {
    Device* device = simulator.device(ordinal);
    return device != nullptr && device->primary().retained == 1 ? &device->primary() : nullptr;
  });
  return ChangePrimary(name, ordinal, [&](Simulator& simulator, Record& record, auto& primary) {
    if (primary.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary.retained > 0) {
      record.handle = 0;  // the call ended nothing
    } else {
      Deactivate(simulator, &primary, name);
    }
    return CUDA_SUCCESS;
  });
}

CUresult Reset(const char* name, CUdevice ordinal) {
  ApiCall call(name);
  AnnounceEnd([&](Simulator& simulator) -> CUcontext {
    Device* device = simulator.device(ordinal);
    return device != nullptr ? &device->primary() : nullptr;
  });
  return ChangePrimary(name, ordinal, [&](Simulator& simulator, Record&, CUctx_st& primary) {
    Deactivate(simulator, &primary, name);
    return CUDA_SUCCESS;
  });
}

CUresult SetFlags(const char* name, CUdevice ordinal, unsigned int flags) {
  return WithPrimary(name, ordinal, [&](Simulator&, CUctx_st& primary) {
    primary.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult Synchronize(Simulator& simulator, CUcontext context) {
  uint64_t done = sim::DoneInContext(simulator, context);
  sim::Span wait = sim::HostWait(simulator, done);
  simulator.Synchronize();
  sim::Post({.kind = sim::NoticeKind::kContextSynchronized,
             .context = context,
             .device = context->device,
             .start_ns = wait.start_ns,
             .end_ns = wait.end_ns});
  simulator.LogStreams("cuCtxSynchronize",
                       {.handle = sim::Bits(context), .device = context->device, .done_ns = done});
  return CUDA_SUCCESS;
}

}  // namespace

CUcontext sim::CurrentContext() {
  return context_depth == 0 ? nullptr : context_stack[context_depth - 1];
}

CUresult sim::Activate(Simulator& simulator, CUcontext context) {
  Device& device = *simulator.device(context->device);
  if (!device.budget().Take(simulator.settings.context)) return CUDA_ERROR_OUT_OF_MEMORY;
  context->active = true;
  context->id = simulator.next_context_id++;
  Post({.kind = NoticeKind::kContextCreated, .context = context, .device = context->device});
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  return ChangePrimary(__func__, ordinal, [&](Simulator& simulator, Record&, CUctx_st& primary) {
    if (!primary.active) {
      if (CUresult result = sim::Activate(simulator, &primary); result != CUDA_SUCCESS)
        return result;
    }
    ++primary.retained;
    *context = &primary;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return Release(__func__, device); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return Release(__func__, device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return Reset(__func__, device); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return Reset(__func__, device); }

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return SetFlags(__func__, device, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return SetFlags(__func__, device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  return WithPrimary(__func__, ordinal, [&](Simulator&, CUctx_st& primary) {
    *flags = primary.flags;
    *active = primary.active;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return Create(__func__, context, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return Create(__func__, context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int, unsigned int flags,
                        CUdevice device) {
  return Create(__func__, context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int flags,
                        CUdevice device) {
  return Create(__func__, context, flags, device);
}

CUresult cuCtxDestroy(CUcontext context) { return Destroy(__func__, context); }
CUresult cuCtxDestroy_v2(CUcontext context) { return Destroy(__func__, context); }

CUresult cuCtxAttach(CUcontext* context, unsigned int flags) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext current = sim::CurrentContext();
    if (flags != 0 || !simulator.contexts.contains(current)) return CUDA_ERROR_INVALID_CONTEXT;
    ++current->retained;
    *context = current;
    return CUDA_SUCCESS;
  });
}

// The last detach destroys the context, and only that one is logged.
CUresult cuCtxDetach(CUcontext context) {
  bool last = false;
  CUresult result = Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (!simulator.contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
    last = --context->retained == 0;
    return CUDA_SUCCESS;
  });
  return last ? Destroy(__func__, context) : result;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  *context = sim::CurrentContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  SetCurrent(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  if (context_depth == kDeepestStack || context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack[context_depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  if (context_depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --context_depth;
  if (context != nullptr) *context = context_stack[context_depth];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  CUcontext context = sim::CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  return Call(__func__, CallGroup::kSync, [&](Simulator& simulator) {
    if (sim::CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return Synchronize(simulator, sim::CurrentContext());
  });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (context == nullptr) return cuCtxSynchronize();
  return Call(__func__, CallGroup::kSync,
              [&](Simulator& simulator) { return Synchronize(simulator, context); });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  *device = context->device;
  return Simulator::Ready();
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  *flags = 0;
  return sim::CurrentContext() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  *value = limit == CU_LIMIT_STACK_SIZE ? 1024 : limit == CU_LIMIT_MALLOC_HEAP_SIZE ? 8 << 20 : 0;
  return sim::CurrentContext() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit, size_t) {
  return sim::CurrentContext() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}
