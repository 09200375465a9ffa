// Streams, events, capture and graphs.
#include "tests/simcuda/runtime/runtime.h"

using sim::InContext;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return InContext([&] { return SIM_DRIVER(cuStreamCreate, 2000)(stream, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return InContext([&] { return SIM_DRIVER(cuStreamCreate, 2000)(stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return InContext(
      [&] { return SIM_DRIVER(cuStreamCreateWithPriority, 5050)(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return InContext([&] { return SIM_DRIVER(cuStreamDestroy, 4000)(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return InContext([&] { return SIM_DRIVER(cuStreamQuery, 2000)(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return InContext([&] { return SIM_DRIVER(cuStreamSynchronize, 2000)(stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return InContext([&] { return SIM_DRIVER(cuStreamWaitEvent, 3020)(stream, event, flags); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return InContext([&] { return SIM_DRIVER(cuStreamGetPriority, 5050)(stream, priority); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int flags) {
  return InContext([&] {
    return SIM_DRIVER(cuStreamAddCallback, 5000)(
        stream, reinterpret_cast<CUstreamCallback>(callback), data, flags);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return InContext([&] { return SIM_DRIVER(cuLaunchHostFunc, 10000)(stream, function, data); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return InContext([&] { return SIM_DRIVER(cuEventCreate, 2000)(event, 0); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return InContext([&] { return SIM_DRIVER(cuEventCreate, 2000)(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return InContext([&] { return SIM_DRIVER(cuEventDestroy, 4000)(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return InContext([&] { return SIM_DRIVER(cuEventRecord, 2000)(event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return InContext([&] { return SIM_DRIVER(cuEventRecordWithFlags, 11010)(event, stream, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return InContext([&] { return SIM_DRIVER(cuEventQuery, 2000)(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return InContext([&] { return SIM_DRIVER(cuEventSynchronize, 2000)(event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return InContext([&] { return SIM_DRIVER(cuEventElapsedTime, 12080)(milliseconds, start, end); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return InContext([&] {
    return SIM_DRIVER(cuIpcGetEventHandle, 4010)(reinterpret_cast<CUipcEventHandle*>(handle),
                                                 event);
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return InContext([&] {
    return SIM_DRIVER(cuIpcOpenEventHandle, 4010)(
        event, *reinterpret_cast<const CUipcEventHandle*>(&handle));
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return InContext([&] {
    return SIM_DRIVER(cuThreadExchangeStreamCaptureMode,
                      10010)(reinterpret_cast<CUstreamCaptureMode*>(mode));
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return InContext([&] {
    return SIM_DRIVER(cuStreamBeginCapture, 10010)(stream, static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return InContext([&] { return SIM_DRIVER(cuStreamEndCapture, 10000)(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return InContext([&] {
    return SIM_DRIVER(cuStreamIsCapturing, 10000)(stream,
                                                  reinterpret_cast<CUstreamCaptureStatus*>(status));
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return InContext(
      [&] { return SIM_DRIVER(cuGraphInstantiateWithFlags, 11040)(executable, graph, flags); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return InContext([&] { return SIM_DRIVER(cuGraphLaunch, 10000)(executable, stream); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return InContext([&] { return SIM_DRIVER(cuGraphExecDestroy, 10000)(executable); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return InContext([&] { return SIM_DRIVER(cuGraphDestroy, 10000)(graph); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return InContext([&] { return SIM_DRIVER(cuGraphGetNodes, 10000)(graph, nodes, count); });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return InContext([&] { return SIM_DRIVER(cuGraphDebugDotPrint, 11030)(graph, path, flags); });
}
