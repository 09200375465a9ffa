// Contexts that end while memory is allocated in them: destroyed, reset, or released for the last
// time.
//
// Exercises: the end of a context ends all allocations in it (device, managed, pinned, registered
// and stream-ordered memory and arrays) and no others; the same addresses return afterwards as new
// allocations; a context that the driver refuses to end ends no allocation.
//
// --refused: expects the first cuCtxDestroy and the first cuDevicePrimaryCtxReset to be refused, as
// its check arranges with SIMCUDA_FAIL=cuCtxDestroy_v2:1=700,cuDevicePrimaryCtxReset_v2:1=700.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

#include "tests/programs/truth_log.h"

namespace {

char registered[1 << 16];

// Allocates one block of each kind. None is freed before the context ends.
void AllocateOfEachKind(TruthLog& truth) {
  CUdeviceptr device = 0, managed = 0, ordered = 0;
  void* pinned = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 4};
  LOG_CALL(truth, cuMemAlloc(&device, 1000003));
  LOG_CALL(truth, cuMemAllocManaged(&managed, 70001, CU_MEM_ATTACH_GLOBAL));
  LOG_CALL(truth, cuMemHostAlloc(&pinned, 4099, 0));
  LOG_CALL(truth, cuMemHostRegister(registered, sizeof(registered), 0));
  LOG_CALL(truth, cuArrayCreate(&array, &shape));
  LOG_CALL(truth, cuMemAllocAsync(&ordered, 5 << 20, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  const bool refused = argc > 1 && std::strcmp(argv[1], "--refused") == 0;
  TruthLog truth;
  LOG_CALL(truth, cuInit(0));

  // A created context, destroyed while another one is current.
  CUcontext own = nullptr, primary = nullptr;
  LOG_CALL(truth, cuCtxCreate(&own, nullptr, 0, 0));
  AllocateOfEachKind(truth);
  LOG_CALL(truth, cuDevicePrimaryCtxRetain(&primary, 0));
  LOG_CALL(truth, cuCtxSetCurrent(primary));
  CUdeviceptr survivor = 0;
  LOG_CALL(truth, cuMemAlloc(&survivor, 31 << 20));
  if (refused) LOG_FAILING_CALL(truth, CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxDestroy(own));
  LOG_CALL(truth, cuCtxDestroy(own));
  LOG_CALL(truth, cuMemFree(survivor));

  // The primary context: a reset frees its memory, and its addresses are used again.
  CUdeviceptr before = 0, after = 0;
  LOG_CALL(truth, cuMemAlloc(&before, 3 << 20));
  AllocateOfEachKind(truth);
  if (refused) LOG_FAILING_CALL(truth, CUDA_ERROR_ILLEGAL_ADDRESS, cuDevicePrimaryCtxReset(0));
  LOG_CALL(truth, cuDevicePrimaryCtxReset(0));
  LOG_CALL(truth, cuDevicePrimaryCtxRetain(&primary, 0));
  LOG_CALL(truth, cuCtxSetCurrent(primary));
  LOG_CALL(truth, cuMemAlloc(&after, 3 << 20));
  truth.Check(after == before, "a reset gives the same address again");

  // A context that is created when others are already known.
  LOG_CALL(truth, cuCtxCreate(&own, nullptr, 0, 0));
  CUdeviceptr inside = 0;
  LOG_CALL(truth, cuMemAlloc(&inside, 123456));
  LOG_CALL(truth, cuCtxDestroy(own));

  // Physical memory belongs to no context.
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  LOG_CALL(truth, cuMemCreate(&handle, 2 << 20, &properties, 0));
  LOG_CALL(truth, cuDevicePrimaryCtxRelease(0));  // the last
  LOG_CALL(truth, cuMemRelease(handle));

  // The runtime: memory, a reset, and memory at the same address.
  void *first = nullptr, *second = nullptr;
  LOG_CALL(truth, cudaMalloc(&first, 3 << 20));
  LOG_CALL(truth, cudaDeviceReset());
  LOG_CALL(truth, cudaMalloc(&second, 3 << 20));
  truth.Check(first == second, "cudaDeviceReset gives the same address again");
  LOG_CALL(truth, cudaFree(second));

  // A thread that has not used the device can reset it, too. Only the driver call names the
  // device.
  void* others = nullptr;
  LOG_CALL(truth, cudaMalloc(&others, 3 << 20));
  TruthLog theirs;
  std::thread([&] { theirs.Call("cuDevicePrimaryCtxReset_v2", cudaDeviceReset()); }).join();
  truth.Append(theirs);
  return truth.Finish();
}
