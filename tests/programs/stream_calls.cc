// Every call of CUDA that makes, orders, waits for or ends streams, once: those of the runtime, then
// those of the driver.
//
// Usage: stream_calls
// Built twice: for a default stream that all threads share, and for one per thread
// (stream_calls_per_thread).
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/programs/told.h"

namespace {

Told told;

// Asks until the answer is not "not yet", which a GPU may need a moment for and which is no event.
#define TELL_WHEN_DONE(not_ready, ...)         \
  do {                                         \
    int result = (__VA_ARGS__);                \
    if (result == (not_ready)) continue;       \
    told.Call(TOLD_NAME(__VA_ARGS__), result); \
    break;                                     \
  } while (true)

void CallRuntime() {
  // Streams that are there when the recording begins are told then, in their order.
  cudaStream_t early, gone;
  TELL(told, cudaStreamCreateWithPriority(&early, cudaStreamNonBlocking, -1));
  cudaStreamCreate(&gone);
  cudaStreamDestroy(gone);
  void* memory = nullptr;
  TELL(told, cudaMalloc(&memory, 1 << 20));  // begins the recording
  cudaStream_t plain, free_running, urgent;
  TELL(told, cudaStreamCreate(&plain));
  TELL(told, cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
  TELL(told, cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -3));
  cudaEvent_t event, late;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&late, cudaEventDisableTiming);
  TELL(told, cudaEventRecord(event, plain));
  TELL(told, cudaEventRecordWithFlags(late, urgent, cudaEventRecordDefault));
  TELL(told, cudaStreamWaitEvent(free_running, event, 0));
  TELL_WHEN_DONE(cudaErrorNotReady, cudaEventQuery(event));
  TELL(told, cudaEventSynchronize(late));
  TELL_WHEN_DONE(cudaErrorNotReady, cudaStreamQuery(plain));
  TELL(told, cudaStreamSynchronize(nullptr));
  TELL(told, cudaDeviceSynchronize());

  cudaGraph_t graph;
  cudaGraphExec_t ready;
  TELL(told, cudaStreamBeginCapture(plain, cudaStreamCaptureModeThreadLocal));
  cudaMemsetAsync(memory, 0, 1 << 20, plain);
  TELL(told, cudaStreamEndCapture(plain, &graph));
  cudaGraphInstantiate(&ready, graph, 0);
  TELL(told, cudaGraphLaunch(ready, urgent));
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);

  TELL(told, cudaStreamDestroy(early));
  TELL(told, cudaStreamDestroy(plain));
  TELL(told, cudaStreamDestroy(free_running));
  TELL(told, cudaStreamDestroy(urgent));
  TELL(told, cudaEventDestroy(event));
  TELL(told, cudaEventDestroy(late));
  TELL(told, cudaFree(memory));
}

void CallDriver() {
  CUdeviceptr memory;
  TELL(told, cuMemAlloc(&memory, 1 << 20));
  CUstream plain, urgent;
  TELL(told, cuStreamCreate(&plain, CU_STREAM_DEFAULT));
  TELL(told, cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -5));
  CUevent event;
  cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  TELL(told, cuEventRecord(event, plain));
  TELL(told, cuEventRecordWithFlags(event, urgent, 0));
  TELL(told, cuStreamWaitEvent(plain, event, 0));
  TELL_WHEN_DONE(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  TELL(told, cuEventSynchronize(event));
  TELL_WHEN_DONE(CUDA_ERROR_NOT_READY, cuStreamQuery(urgent));
  TELL(told, cuStreamSynchronize(plain));
  TELL(told, cuCtxSynchronize());

  CUgraph graph;
  CUgraphExec ready;
  TELL(told, cuStreamBeginCapture(plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  cuMemsetD8Async(memory, 0, 1 << 20, plain);
  TELL(told, cuStreamEndCapture(plain, &graph));
  cuGraphInstantiate(&ready, graph, 0);
  TELL(told, cuGraphLaunch(ready, plain));
  cuGraphExecDestroy(ready);
  cuGraphDestroy(graph);

  TELL(told, cuStreamDestroy(plain));
  TELL(told, cuStreamDestroy(urgent));
  TELL(told, cuEventDestroy(event));
  TELL(told, cuMemFree(memory));
}

}  // namespace

int main() {
  CallRuntime();
  CallDriver();
  return told.Finish();
}
