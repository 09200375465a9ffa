// What a wait costs that no hook sees: by itself, with a subscriber that does nothing, or with
// whoever else has subscribed (us, when we are preloaded).
//
// Usage: callback_cost WAITS [--empty]
// Prints nanoseconds of one wait, the best of nine rounds.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/programs/cupti/unseen.h"

namespace {

constexpr const char* kCupti = "libcupti.so.13";

void CUPTIAPI Nothing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

bool SubscribeToNothing() {
  CUpti_SubscriberHandle subscriber;
  return Unseen<decltype(&cuptiSubscribe)>(kCupti, "cuptiSubscribe")(&subscriber, Nothing,
                                                                     nullptr) == CUPTI_SUCCESS &&
         Unseen<decltype(&cuptiEnableDomain)>(kCupti, "cuptiEnableDomain")(
             1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE) == CUPTI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int waits = std::atoi(argv[1]);
  void* memory;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  if (argc > 2 && !SubscribeToNothing()) return 1;
  const auto wait = Unseen<decltype(&cuCtxSynchronize)>("libcuda.so.1", "cuCtxSynchronize");
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
