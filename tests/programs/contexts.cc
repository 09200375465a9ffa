// Contexts that end while memory is allocated in them: destroyed, reset, released for the last
// time.
//
// Exercises: that the end of a context ends what was allocated in it, device, managed, pinned,
// registered and stream-ordered memory and arrays, and only that; that the same addresses come back
// afterwards as new allocations; that a context which the driver refuses to end ends nothing.
//
// With SIMCUDA_FAIL=cuCtxDestroy_v2:1=700,cuDevicePrimaryCtxReset_v2:1=700 in its environment, as
// its check runs it, the first of each is refused; --refused tells the program to expect that.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

#include "tests/programs/told.h"

namespace {

char registered[1 << 16];

// One of each kind, all left to the end of the context.
void AllocateOfEachKind(Told& told) {
  CUdeviceptr device = 0, managed = 0, ordered = 0;
  void* pinned = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 4};
  TELL(told, cuMemAlloc(&device, 1000003));
  TELL(told, cuMemAllocManaged(&managed, 70001, CU_MEM_ATTACH_GLOBAL));
  TELL(told, cuMemHostAlloc(&pinned, 4099, 0));
  TELL(told, cuMemHostRegister(registered, sizeof(registered), 0));
  TELL(told, cuArrayCreate(&array, &shape));
  TELL(told, cuMemAllocAsync(&ordered, 5 << 20, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  const bool refused = argc > 1 && std::strcmp(argv[1], "--refused") == 0;
  Told told;
  TELL(told, cuInit(0));

  // A context of its own, destroyed while another one is current.
  CUcontext own = nullptr, primary = nullptr;
  TELL(told, cuCtxCreate(&own, nullptr, 0, 0));
  AllocateOfEachKind(told);
  TELL(told, cuDevicePrimaryCtxRetain(&primary, 0));
  TELL(told, cuCtxSetCurrent(primary));
  CUdeviceptr survivor = 0;
  TELL(told, cuMemAlloc(&survivor, 31 << 20));
  if (refused) TELL_FAILS(told, CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxDestroy(own));
  TELL(told, cuCtxDestroy(own));
  TELL(told, cuMemFree(survivor));

  // The primary context: what it had is gone, and its addresses are given out again.
  CUdeviceptr before = 0, after = 0;
  TELL(told, cuMemAlloc(&before, 3 << 20));
  AllocateOfEachKind(told);
  if (refused) TELL_FAILS(told, CUDA_ERROR_ILLEGAL_ADDRESS, cuDevicePrimaryCtxReset(0));
  TELL(told, cuDevicePrimaryCtxReset(0));
  TELL(told, cuDevicePrimaryCtxRetain(&primary, 0));
  TELL(told, cuCtxSetCurrent(primary));
  TELL(told, cuMemAlloc(&after, 3 << 20));
  told.Check(after == before, "a reset gives the same address again");

  // A context that is created when others are known already.
  TELL(told, cuCtxCreate(&own, nullptr, 0, 0));
  CUdeviceptr inside = 0;
  TELL(told, cuMemAlloc(&inside, 123456));
  TELL(told, cuCtxDestroy(own));

  // Physical memory belongs to no context.
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  TELL(told, cuMemCreate(&handle, 2 << 20, &properties, 0));
  TELL(told, cuDevicePrimaryCtxRelease(0));  // the last
  TELL(told, cuMemRelease(handle));

  // The runtime: memory, reset, memory at the same address, and an end with it live.
  void *first = nullptr, *second = nullptr;
  TELL(told, cudaMalloc(&first, 3 << 20));
  TELL(told, cudaDeviceReset());
  TELL(told, cudaMalloc(&second, 3 << 20));
  told.Check(first == second, "cudaDeviceReset gives the same address again");
  TELL(told, cudaFree(second));

  // A thread that has not used the device resets it all the same. Which device that is, only the
  // driver is told.
  void* others = nullptr;
  TELL(told, cudaMalloc(&others, 3 << 20));
  Told theirs;
  std::thread([&] { theirs.Call("cuDevicePrimaryCtxReset_v2", cudaDeviceReset()); }).join();
  told.Append(theirs);
  return told.Finish();
}
