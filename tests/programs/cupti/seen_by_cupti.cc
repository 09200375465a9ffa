// Makes calls that hooks see, the same calls bypassing the hooks, and synchronisations inside
// allocations, to check what CUPTI adds to each.
//
// Prints the handles that it used, as JSON. A recording must contain each of them exactly once.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "tests/programs/cupti/unhooked.h"

namespace {

int failures = 0;

void Check(const char* what, int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: %d\n", what, result);
  ++failures;
}
#define CHECK(call) Check(#call, call)

template <typename Handle>
unsigned long long Number(Handle handle) {
  return reinterpret_cast<unsigned long long>(handle);
}

constexpr const char* kDriver = "libcuda.so.1";

}  // namespace

int main() {
  void* memory;
  CHECK(cudaMalloc(&memory, 1 << 20));  // the recording begins, and CUPTI with it

  cudaStream_t hooked;
  CHECK(cudaStreamCreateWithFlags(&hooked, cudaStreamNonBlocking));
  CHECK(cudaMemsetAsync(memory, 0, 1 << 20, hooked));
  CHECK(cudaStreamSynchronize(hooked));
  CHECK(cudaDeviceSynchronize());

  const auto create = Unhooked<decltype(&cuStreamCreate)>(kDriver, "cuStreamCreate");
  const auto synchronize = Unhooked<decltype(&cuStreamSynchronize)>(kDriver, "cuStreamSynchronize");
  const auto synchronize_all = Unhooked<decltype(&cuCtxSynchronize)>(kDriver, "cuCtxSynchronize");
  const auto destroy = Unhooked<decltype(&cuStreamDestroy)>(kDriver, "cuStreamDestroy_v2");
  CUstream unseen;
  CHECK(create(&unseen, CU_STREAM_NON_BLOCKING));
  CHECK(cudaMemsetAsync(memory, 1, 1 << 19, unseen));
  CHECK(synchronize(unseen));
  CHECK(synchronize_all());

  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));

  char host[4096] = {};
  CHECK(cudaMemcpyAsync(memory, host, sizeof(host), cudaMemcpyHostToDevice, hooked));
  CHECK(cudaMemcpyAsync(host, memory, 1024, cudaMemcpyDeviceToHost, hooked));
  CHECK(cudaStreamSynchronize(hooked));

  void* ordered;
  CHECK(cudaMallocAsync(&ordered, 3 << 20, hooked));
  CHECK(cudaFreeAsync(ordered, hooked));
  CHECK(cudaStreamSynchronize(hooked));

  std::printf(
      "{\"hooked\": %llu, \"unseen\": %llu, \"graph\": %llu, \"exec\": %llu, \"memory\": %llu, "
      "\"ordered\": %llu}\n",
      Number(hooked), Number(unseen), Number(graph), Number(exec), Number(memory), Number(ordered));
  CHECK(destroy(unseen));
  CHECK(cudaFree(memory));
  CHECK(cudaStreamDestroy(hooked));
  return failures == 0 ? 0 : 1;
}
