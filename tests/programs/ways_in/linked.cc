// A program that is linked with the runtime and calls it as programs do.
//
// Built with the library of CUDA 13 (linked), with that of CUDA 12 (linked_12), with the static one,
// whose calls only the driver's entry points see (linked_static), and for one default stream per
// thread, where the header gives stream functions other names (linked_per_thread); and as linkers
// differ: bound at the first call of each function (linked_lazy) or at once (linked_now), and at fixed
// addresses (linked_fixed), where the program's own entries of functions stand for them everywhere.
#include "tests/programs/ways_in/stories.h"

#ifdef BY_ADDRESS
// Makes the program's own entries of these functions what all modules know them by.
__attribute__((used)) void* KnownAddress(bool free) {
  return free ? reinterpret_cast<void*>(&cudaFree) : reinterpret_cast<void*>(&cudaMalloc);
}
#endif

int main() {
  Told told;
  void *first = nullptr, *second = nullptr, *ordered = nullptr, *pinned = nullptr, *none = nullptr;
  TELL(told, cudaMalloc(&first, 1000003));
  Moment();
  TELL(told, cudaMalloc(&second, 3 << 20));
  TELL_FAILS(told, cudaErrorMemoryAllocation, cudaMalloc(&none, size_t{1} << 50));
  TELL(told, cudaMallocAsync(&ordered, 70001, nullptr));
  TELL(told, cudaHostAlloc(&pinned, 4099, 0));
  TELL(told, cudaFree(first));
  TELL(told, cudaMalloc(&first, 1000003));
  TELL(told, cudaFreeAsync(ordered, nullptr));
  TELL(told, cudaFreeHost(pinned));
  TELL(told, cudaFree(second));
  TELL(told, cudaFree(first));
  return told.Finish();
}
