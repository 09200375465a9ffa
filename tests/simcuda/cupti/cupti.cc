// Versions, times, ids and the end of the simulated CUPTI. The rest is in cupti_callbacks.cc and
// cupti_activity.cc; functions that are not implemented return CUPTI_ERROR_NOT_SUPPORTED.
#include "tests/simcuda/cupti/activity.h"
#include "tests/simcuda/cupti/buffers.h"
#include "tests/simcuda/cupti/session.h"
#include "tests/simcuda/objects.h"

using sim::Refusal;

namespace {

constexpr uint32_t kVersionWithManySubscribers = 130300;

const char* NameOf(CUptiResult result) {
  switch (result) {
#define SIM_NAME(code) \
  case code:           \
    return #code;
    SIM_NAME(CUPTI_SUCCESS)
    SIM_NAME(CUPTI_ERROR_INVALID_PARAMETER)
    SIM_NAME(CUPTI_ERROR_INVALID_DEVICE)
    SIM_NAME(CUPTI_ERROR_INVALID_CONTEXT)
    SIM_NAME(CUPTI_ERROR_INVALID_OPERATION)
    SIM_NAME(CUPTI_ERROR_OUT_OF_MEMORY)
    SIM_NAME(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT)
    SIM_NAME(CUPTI_ERROR_API_NOT_IMPLEMENTED)
    SIM_NAME(CUPTI_ERROR_MAX_LIMIT_REACHED)
    SIM_NAME(CUPTI_ERROR_NOT_READY)
    SIM_NAME(CUPTI_ERROR_NOT_COMPATIBLE)
    SIM_NAME(CUPTI_ERROR_NOT_INITIALIZED)
    SIM_NAME(CUPTI_ERROR_QUEUE_EMPTY)
    SIM_NAME(CUPTI_ERROR_INVALID_HANDLE)
    SIM_NAME(CUPTI_ERROR_INVALID_STREAM)
    SIM_NAME(CUPTI_ERROR_INVALID_KIND)
    SIM_NAME(CUPTI_ERROR_DISABLED)
    SIM_NAME(CUPTI_ERROR_INVALID_MODULE)
    SIM_NAME(CUPTI_ERROR_NOT_SUPPORTED)
    SIM_NAME(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
    SIM_NAME(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    SIM_NAME(CUPTI_ERROR_UNKNOWN)
#undef SIM_NAME
    default:
      return nullptr;
  }
}

}  // namespace

// Every exported function that is not implemented jumps here (CMakeLists.txt, "stubs").
extern "C" CUptiResult SimCuptiNotSupported() {
  CUptiResult refusal = Refusal();
  return refusal != CUPTI_SUCCESS ? refusal : CUPTI_ERROR_NOT_SUPPORTED;
}

// Entry points of NVTX: 0 means that this library takes no NVTX calls.
extern "C" int SimCuptiNoNvtx() { return 0; }

CUptiResult cuptiGetVersion(uint32_t* version) {
  if (CUptiResult refusal = Refusal(false); refusal != CUPTI_SUCCESS) return refusal;
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  bool many = sim::CuptiSettings().cupti_multi && SIMCUDA_CUPTI_VERSION >= 130000;
  *version = many ? kVersionWithManySubscribers : SIMCUDA_CUPTI_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* name = NameOf(result);
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = name;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}

// No error is stored for later queries: every call returns its own result.
CUptiResult cuptiGetLastError() { return CUPTI_SUCCESS; }

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  if (CUptiResult refusal = Refusal(false); refusal != CUPTI_SUCCESS) return refusal;
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = sim::Timestamp();
  return CUPTI_SUCCESS;
}

// Times that are already written stay as they are, so the clock can only be changed before.
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (function == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  sim::SetClock(function);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t* id) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = sim::Driver().context_id(context);
  return *id != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

// Here null does not mean the current context.
CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* device) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (device == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (context == nullptr || sim::Driver().context_id(context) == 0) {
    return CUPTI_ERROR_INVALID_CONTEXT;
  }
  *device = static_cast<uint32_t>(context->device);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                               uint32_t* id) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = sim::Driver().stream_id(context, stream, per_thread != 0);
  return *id != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t) { return Refusal(); }

#if SIMCUDA_CUPTI_VERSION >= 130000
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return Refusal(); }
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) { return Refusal(); }
#endif

// Ends everything: subscribers, what is enabled, and the buffers that were not flushed. A later
// call starts from scratch.
CUptiResult cuptiFinalize() {
  if (CUptiResult refusal = Refusal(false); refusal != CUPTI_SUCCESS) return refusal;
  if (Refusal() != CUPTI_SUCCESS) return CUPTI_SUCCESS;  // nothing was started
  {
    std::lock_guard<std::mutex> lock(sim::CuptiMutex());
    sim::ForgetSubscribers();
    sim::ForgetActivities();
    sim::UpdateAttachment();
  }
  sim::EndBuffers();
  sim::SetClock(nullptr);
  if (sim::CuptiSettings().cupti_memory > 0) {
    sim::Driver().replay([](const sim::Notice& notice) {
      if (notice.kind == sim::NoticeKind::kContextCreated) {
        sim::Driver().hold_memory(notice.context, 0);
      }
    });
  }
  return CUPTI_SUCCESS;
}
