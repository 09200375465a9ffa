// Makes every CUDA call that creates, orders, waits for or destroys streams, first those of the
// runtime, then those of the driver.
//
// Usage: stream_calls
// Built twice: with one default stream for all threads, and with one per thread
// (stream_calls_per_thread).
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/programs/truth_log.h"

namespace {

TruthLog truth;

// Repeats a query until the result is not `not_ready`, and logs the last call. A query that returns
// `not_ready` is not recorded.
#define LOG_CALL_WHEN_DONE(not_ready, ...)       \
  do {                                           \
    int result = (__VA_ARGS__);                  \
    if (result == (not_ready)) continue;         \
    truth.Call(TRUTH_NAME(__VA_ARGS__), result); \
    break;                                       \
  } while (true)

void CallRuntime() {
  // Streams that exist when the recording begins are recorded then, in their order.
  cudaStream_t early, gone;
  LOG_CALL(truth, cudaStreamCreateWithPriority(&early, cudaStreamNonBlocking, -1));
  cudaStreamCreate(&gone);
  cudaStreamDestroy(gone);
  void* memory = nullptr;
  LOG_CALL(truth, cudaMalloc(&memory, 1 << 20));  // begins the recording
  cudaStream_t plain, free_running, urgent;
  LOG_CALL(truth, cudaStreamCreate(&plain));
  LOG_CALL(truth, cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
  LOG_CALL(truth, cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -3));
  cudaEvent_t event, late;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&late, cudaEventDisableTiming);
  LOG_CALL(truth, cudaEventRecord(event, plain));
  LOG_CALL(truth, cudaEventRecordWithFlags(late, urgent, cudaEventRecordDefault));
  LOG_CALL(truth, cudaStreamWaitEvent(free_running, event, 0));
  LOG_CALL_WHEN_DONE(cudaErrorNotReady, cudaEventQuery(event));
  LOG_CALL(truth, cudaEventSynchronize(late));
  LOG_CALL_WHEN_DONE(cudaErrorNotReady, cudaStreamQuery(plain));
  LOG_CALL(truth, cudaStreamSynchronize(nullptr));
  LOG_CALL(truth, cudaDeviceSynchronize());

  cudaGraph_t graph;
  cudaGraphExec_t ready;
  LOG_CALL(truth, cudaStreamBeginCapture(plain, cudaStreamCaptureModeThreadLocal));
  cudaMemsetAsync(memory, 0, 1 << 20, plain);
  LOG_CALL(truth, cudaStreamEndCapture(plain, &graph));
  cudaGraphInstantiate(&ready, graph, 0);
  LOG_CALL(truth, cudaGraphLaunch(ready, urgent));
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);

  LOG_CALL(truth, cudaStreamDestroy(early));
  LOG_CALL(truth, cudaStreamDestroy(plain));
  LOG_CALL(truth, cudaStreamDestroy(free_running));
  LOG_CALL(truth, cudaStreamDestroy(urgent));
  LOG_CALL(truth, cudaEventDestroy(event));
  LOG_CALL(truth, cudaEventDestroy(late));
  LOG_CALL(truth, cudaFree(memory));
}

void CallDriver() {
  CUdeviceptr memory;
  LOG_CALL(truth, cuMemAlloc(&memory, 1 << 20));
  CUstream plain, urgent;
  LOG_CALL(truth, cuStreamCreate(&plain, CU_STREAM_DEFAULT));
  LOG_CALL(truth, cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -5));
  CUevent event;
  cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  LOG_CALL(truth, cuEventRecord(event, plain));
  LOG_CALL(truth, cuEventRecordWithFlags(event, urgent, 0));
  LOG_CALL(truth, cuStreamWaitEvent(plain, event, 0));
  LOG_CALL_WHEN_DONE(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  LOG_CALL(truth, cuEventSynchronize(event));
  LOG_CALL_WHEN_DONE(CUDA_ERROR_NOT_READY, cuStreamQuery(urgent));
  LOG_CALL(truth, cuStreamSynchronize(plain));
  LOG_CALL(truth, cuCtxSynchronize());

  CUgraph graph;
  CUgraphExec ready;
  LOG_CALL(truth, cuStreamBeginCapture(plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  cuMemsetD8Async(memory, 0, 1 << 20, plain);
  LOG_CALL(truth, cuStreamEndCapture(plain, &graph));
  cuGraphInstantiate(&ready, graph, 0);
  LOG_CALL(truth, cuGraphLaunch(ready, plain));
  cuGraphExecDestroy(ready);
  cuGraphDestroy(graph);

  LOG_CALL(truth, cuStreamDestroy(plain));
  LOG_CALL(truth, cuStreamDestroy(urgent));
  LOG_CALL(truth, cuEventDestroy(event));
  LOG_CALL(truth, cuMemFree(memory));
}

}  // namespace

int main() {
  CallRuntime();
  CallDriver();
  return truth.Finish();
}
