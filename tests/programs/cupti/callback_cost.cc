// Measures the cost of a synchronisation that no hook sees: without a subscriber, with a subscriber
// that does nothing (--empty), or with the profiler's subscriber if it is preloaded.
//
// Usage: callback_cost WAITS [--empty]
// Prints nanoseconds per wait, the minimum of nine rounds.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/programs/cupti/unhooked.h"

namespace {

constexpr const char* kCupti = "libcupti.so.13";

void CUPTIAPI Nothing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

bool SubscribeToNothing() {
  CUpti_SubscriberHandle subscriber;
  return Unhooked<decltype(&cuptiSubscribe)>(kCupti, "cuptiSubscribe")(&subscriber, Nothing,
                                                                       nullptr) == CUPTI_SUCCESS &&
         Unhooked<decltype(&cuptiEnableDomain)>(kCupti, "cuptiEnableDomain")(
             1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE) == CUPTI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int waits = std::atoi(argv[1]);
  void* memory;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  if (argc > 2 && !SubscribeToNothing()) return 1;
  const auto wait = Unhooked<decltype(&cuCtxSynchronize)>("libcuda.so.1", "cuCtxSynchronize");
  double best = 1e18;
  for (int round = 0; round < 9; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < waits; ++i) wait();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (took.count() / waits < best) best = took.count() / waits;
  }
  std::printf("%.0f\n", best);
  return 0;
}
