// A program that is linked with the runtime and calls it in the ordinary way. It is built as
//
//   linked             with the shared runtime of CUDA 13
//   linked_12          with the shared runtime of CUDA 12
//   linked_static      with the static runtime, whose calls are seen only at the driver's functions
//   linked_per_thread  with one default stream per thread: the header renames stream functions
//   linked_lazy        binding each function at its first call
//   linked_now         binding all functions at load time
//   linked_fixed       at fixed addresses: the program's PLT entries are the functions' addresses
//                      in all modules
#include "tests/programs/linkage/call_sequences.h"

#ifdef BY_ADDRESS
// Makes the program's PLT entries of these functions their addresses in all modules.
__attribute__((used)) void* KnownAddress(bool free) {
  return free ? reinterpret_cast<void*>(&cudaFree) : reinterpret_cast<void*>(&cudaMalloc);
}
#endif

int main() {
  TruthLog truth;
  void *first = nullptr, *second = nullptr, *ordered = nullptr, *pinned = nullptr, *none = nullptr;
  LOG_CALL(truth, cudaMalloc(&first, 1000003));
  Moment();
  LOG_CALL(truth, cudaMalloc(&second, 3 << 20));
  LOG_FAILING_CALL(truth, cudaErrorMemoryAllocation, cudaMalloc(&none, size_t{1} << 50));
  LOG_CALL(truth, cudaMallocAsync(&ordered, 70001, nullptr));
  LOG_CALL(truth, cudaHostAlloc(&pinned, 4099, 0));
  LOG_CALL(truth, cudaFree(first));
  LOG_CALL(truth, cudaMalloc(&first, 1000003));
  LOG_CALL(truth, cudaFreeAsync(ordered, nullptr));
  LOG_CALL(truth, cudaFreeHost(pinned));
  LOG_CALL(truth, cudaFree(second));
  LOG_CALL(truth, cudaFree(first));
  return truth.Finish();
}
