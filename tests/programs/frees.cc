// Frees that are not like the others: of what is no memory, twice, in another context, by another
// thread, refused by the driver, and of stream-ordered memory by cudaFree. And allocations of no
// bytes, which nobody frees.
//
// Exercises: that a free which the driver refuses takes nothing out of the live set, and that one
// which it accepts does, whoever makes it and wherever.
//
// With SIMCUDA_FAIL=cuMemFree_v2:4=700,cuMemRelease:1=700 in its environment, as its check runs it,
// the fourth free that reaches the driver is refused, and the first release; --refused tells the
// program to expect that.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

#include "tests/programs/told.h"

namespace {

void* Allocate(Told& told, size_t size) {
  void* pointer = nullptr;
  TELL(told, cudaMalloc(&pointer, size));
  return pointer;
}

// The release that is refused drops no reference, the next one drops one, the last ends it.
void FreeAHandleWithTwoReferences(Told& told, bool refused) {
  constexpr size_t kSize = 2 << 20;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0, again = 0;
  TELL(told, cuMemAddressReserve(&address, kSize, 0, 0, 0));
  TELL(told, cuMemCreate(&handle, kSize, &properties, 0));
  TELL(told, cuMemMap(address, kSize, 0, handle, 0));
  told.Check(
      cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)) == 0 && again == handle,
      "a handle has two references");
  if (refused)
    told.Check(cuMemRelease(handle) == CUDA_ERROR_ILLEGAL_ADDRESS, "a release is refused");
  told.Check(cuMemRelease(handle) == CUDA_SUCCESS, "a reference is dropped");
  TELL(told, cuMemUnmap(address, kSize));
  TELL(told, cuMemRelease(handle));
  TELL(told, cuMemAddressFree(address, kSize));
}

}  // namespace

int main(int argc, char** argv) {
  bool refused = argc > 1 && std::strcmp(argv[1], "--refused") == 0;
  Told told;

  void* unknown = reinterpret_cast<void*>(0x1234567000);
  void* first = Allocate(told, 11111);
  TELL_FAILS(told, cudaErrorInvalidValue, cudaFree(unknown));  // the first that reaches the driver
  TELL(told, cudaFree(first));                                 // 2
  TELL_FAILS(told, cudaErrorInvalidValue, cudaFree(first));    // 3: again
  told.Check(cudaFree(nullptr) == cudaSuccess, "nothing can be freed");  // reaches nobody

  // No bytes are no memory: success, and a null pointer, whose free would be none either.
  void *no_memory = first, *no_pinned = first;
  told.Check(cudaMalloc(&no_memory, 0) == cudaSuccess && no_memory == nullptr, "no device memory");
  told.Check(cudaHostAlloc(&no_pinned, 0, 0) == cudaSuccess && no_pinned == nullptr,
             "no pinned memory");

  void* kept = Allocate(told, 22222);
  if (refused) {
    TELL_FAILS(told, cudaErrorIllegalAddress, cudaFree(kept));  // 4
  }
  TELL(told, cudaFree(kept));

  void* inside = Allocate(told, 33333);
  void* middle = static_cast<char*>(inside) + 512;
  TELL_FAILS(told, cudaErrorInvalidValue, cudaFree(middle));

  CUcontext other = nullptr;
  TELL(told, cuCtxCreate(&other, nullptr, 0, 0));
  TELL(told, cudaFree(inside));  // allocated in the primary context
  CUdeviceptr in_other = 0;
  TELL(told, cuMemAlloc(&in_other, 44444));
  TELL(told, cuCtxSetCurrent(nullptr));
  TELL(told, cuMemFree(in_other));
  TELL(told, cuCtxDestroy(other));

  void* handed_over = Allocate(told, 55555);
  Told theirs;
  std::thread([&] { TELL(theirs, cudaFree(handed_over)); }).join();
  told.Append(theirs);

  void* ordered = nullptr;
  TELL(told, cudaMallocAsync(&ordered, 66666, nullptr));
  TELL(told, cudaFree(ordered));
  void* plain = Allocate(told, 77777);
  TELL(told, cudaFreeAsync(plain, nullptr));
  TELL_FAILS(told, cudaErrorInvalidValue, cudaFreeAsync(plain, nullptr));

  FreeAHandleWithTwoReferences(told, refused);

  void* pinned = nullptr;
  TELL(told, cudaHostAlloc(&pinned, 88888, cudaHostAllocDefault));
  TELL_FAILS(told, cudaErrorInvalidValue, cudaFree(pinned));
  TELL(told, cudaFreeHost(pinned));
  return told.Finish();
}
