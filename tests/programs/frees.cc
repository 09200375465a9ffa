// Unusual frees: of an unknown address, twice, in another context, by another thread, refused by
// the driver, and of stream-ordered memory by cudaFree. Also allocations of zero bytes, which need
// no free.
//
// Exercises: a free that the driver refuses removes nothing from the live set; one that it accepts
// does, in any thread and context.
//
// --refused: expects the fourth free that reaches the driver and the first release to be refused,
// as its check arranges with SIMCUDA_FAIL=cuMemFree_v2:4=700,cuMemRelease:1=700.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

#include "tests/programs/truth_log.h"

namespace {

void* Allocate(TruthLog& truth, size_t size) {
  void* pointer = nullptr;
  LOG_CALL(truth, cudaMalloc(&pointer, size));
  return pointer;
}

// The refused release drops no reference, the next one drops one, the last one frees the memory.
void FreeAHandleWithTwoReferences(TruthLog& truth, bool refused) {
  constexpr size_t kSize = 2 << 20;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0, again = 0;
  LOG_CALL(truth, cuMemAddressReserve(&address, kSize, 0, 0, 0));
  LOG_CALL(truth, cuMemCreate(&handle, kSize, &properties, 0));
  LOG_CALL(truth, cuMemMap(address, kSize, 0, handle, 0));
  truth.Check(
      cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)) == 0 && again == handle,
      "a handle has two references");
  if (refused)
    truth.Check(cuMemRelease(handle) == CUDA_ERROR_ILLEGAL_ADDRESS, "a release is refused");
  truth.Check(cuMemRelease(handle) == CUDA_SUCCESS, "a reference is dropped");
  LOG_CALL(truth, cuMemUnmap(address, kSize));
  LOG_CALL(truth, cuMemRelease(handle));
  LOG_CALL(truth, cuMemAddressFree(address, kSize));
}

}  // namespace

int main(int argc, char** argv) {
  bool refused = argc > 1 && std::strcmp(argv[1], "--refused") == 0;
  TruthLog truth;

  void* unknown = reinterpret_cast<void*>(0x1234567000);
  void* first = Allocate(truth, 11111);
  // The numbers count the frees that reach the driver.
  LOG_FAILING_CALL(truth, cudaErrorInvalidValue, cudaFree(unknown));         // 1
  LOG_CALL(truth, cudaFree(first));                                          // 2
  LOG_FAILING_CALL(truth, cudaErrorInvalidValue, cudaFree(first));           // 3: again
  truth.Check(cudaFree(nullptr) == cudaSuccess, "a null pointer is freed");  // not by the driver

  // An allocation of zero bytes succeeds with a null pointer, which needs no free.
  void *no_memory = first, *no_pinned = first;
  truth.Check(cudaMalloc(&no_memory, 0) == cudaSuccess && no_memory == nullptr, "no device memory");
  truth.Check(cudaHostAlloc(&no_pinned, 0, 0) == cudaSuccess && no_pinned == nullptr,
              "no pinned memory");

  void* kept = Allocate(truth, 22222);
  if (refused) {
    LOG_FAILING_CALL(truth, cudaErrorIllegalAddress, cudaFree(kept));  // 4
  }
  LOG_CALL(truth, cudaFree(kept));

  void* inside = Allocate(truth, 33333);
  void* middle = static_cast<char*>(inside) + 512;
  LOG_FAILING_CALL(truth, cudaErrorInvalidValue, cudaFree(middle));

  CUcontext other = nullptr;
  LOG_CALL(truth, cuCtxCreate(&other, nullptr, 0, 0));
  LOG_CALL(truth, cudaFree(inside));  // allocated in the primary context
  CUdeviceptr in_other = 0;
  LOG_CALL(truth, cuMemAlloc(&in_other, 44444));
  LOG_CALL(truth, cuCtxSetCurrent(nullptr));
  LOG_CALL(truth, cuMemFree(in_other));
  LOG_CALL(truth, cuCtxDestroy(other));

  void* handed_over = Allocate(truth, 55555);
  TruthLog theirs;
  std::thread([&] { LOG_CALL(theirs, cudaFree(handed_over)); }).join();
  truth.Append(theirs);

  void* ordered = nullptr;
  LOG_CALL(truth, cudaMallocAsync(&ordered, 66666, nullptr));
  LOG_CALL(truth, cudaFree(ordered));
  void* plain = Allocate(truth, 77777);
  LOG_CALL(truth, cudaFreeAsync(plain, nullptr));
  LOG_FAILING_CALL(truth, cudaErrorInvalidValue, cudaFreeAsync(plain, nullptr));

  FreeAHandleWithTwoReferences(truth, refused);

  void* pinned = nullptr;
  LOG_CALL(truth, cudaHostAlloc(&pinned, 88888, cudaHostAllocDefault));
  LOG_FAILING_CALL(truth, cudaErrorInvalidValue, cudaFree(pinned));
  LOG_CALL(truth, cudaFreeHost(pinned));
  return truth.Finish();
}
