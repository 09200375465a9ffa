// Runs several threads that at random allocate memory of all kinds and free it: their own, that of
// other threads, and all memory of a context at once.
//
// Exercises: addresses and handles that change their kind, thread and context while other threads
// make calls; with a small SIMCUDA_MEMORY, also out of memory.
//
// Usage: mixed_calls [--threads N] [--count N] [--seed N]
//   --count  steps per thread
//   --seed   for the random choices; the order of the threads is not reproducible
// Exits with 1 if a call failed with an error other than out of memory.
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kPage = 2 << 20;
enum Kind { kDevice, kPitched, kManaged, kPinned, kArray, kMipmapped, kOrdered, kVirtual, kKinds };

struct Memory {
  Kind kind;
  CUdeviceptr value;
  uint64_t size = 0;
  CUmemGenericAllocationHandle handle = 0;
};

std::atomic<int> failures{0};

void Check(const char* what, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  if (failures++ == 0) std::fprintf(stderr, "mixed_calls: %s: %d\n", what, result);
}

// Passes memory to the thread that takes it next.
class Exchange {
 public:
  void Put(const Memory& memory) {
    std::lock_guard<std::mutex> lock(mutex_);
    memory_.push_back(memory);
  }
  bool Take(std::minstd_rand& random, Memory* memory) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (memory_.empty()) return false;
    std::swap(memory_[random() % memory_.size()], memory_.back());
    *memory = memory_.back();
    memory_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Memory> memory_;
};

class Worker {
 public:
  Worker(CUcontext context, Exchange* exchange, unsigned int seed)
      : context_(context), exchange_(exchange), random_(seed) {}

  void Run(int steps) {
    Check("cuCtxSetCurrent", cuCtxSetCurrent(context_));
    for (int step = 0; step < steps; ++step) {
      unsigned int dice = random_() % 100;
      Memory memory;
      if (dice < 58) {
        if (Allocate(kKinds, &memory)) exchange_->Put(memory);
      } else if (dice < 98) {
        if (exchange_->Take(random_, &memory)) Free(memory);
      } else {
        LiveInAContext();
      }
    }
  }

  void Free(const Memory& memory) {
    switch (memory.kind) {
      case kPinned:
        return Check("free", cuMemFreeHost(reinterpret_cast<void*>(memory.value)));
      case kArray:
        return Check("free", cuArrayDestroy(reinterpret_cast<CUarray>(memory.value)));
      case kMipmapped:
        return Check("free",
                     cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(memory.value)));
      case kOrdered:
        return Check("free", cuMemFreeAsync(memory.value, nullptr));
      case kVirtual:
        Check("unmap", cuMemUnmap(memory.value, memory.size));
        Check("release", cuMemRelease(memory.handle));
        return Check("unreserve", cuMemAddressFree(memory.value, memory.size));
      default:
        return Check("free", cuMemFree(memory.value));
    }
  }

 private:
  uint64_t Size() { return random_() % 4 == 0 ? kPage + random_() % kPage : 1 + random_() % 70000; }

  // Returns false if out of memory, which is not a failure.
  bool Allocate(int kinds, Memory* memory) {
    memory->kind = static_cast<Kind>(random_() % kinds);
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        1 + random_() % 500, 1 + random_() % 500, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    CUDA_ARRAY_DESCRIPTOR flat = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
    size_t pitch = 0;
    switch (memory->kind) {
      case kDevice:
        return Made(cuMemAlloc(&memory->value, Size()));
      case kPitched:
        return Made(
            cuMemAllocPitch(&memory->value, &pitch, 1 + random_() % 5000, 1 + random_() % 99, 4));
      case kManaged:
        return Made(cuMemAllocManaged(&memory->value, Size(), CU_MEM_ATTACH_GLOBAL));
      case kPinned:
        return Made(cuMemHostAlloc(reinterpret_cast<void**>(&memory->value), Size(), 0));
      case kArray:
        return Made(cuArrayCreate(reinterpret_cast<CUarray*>(&memory->value), &flat));
      case kMipmapped:
        return Made(cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(&memory->value),
                                           &shape, 1 + random_() % 5));
      case kOrdered:
        return Made(cuMemAllocAsync(&memory->value, Size(), nullptr));
      default:
        return AllocateVirtual(memory);
    }
  }

  bool AllocateVirtual(Memory* memory) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memory->size = kPage * (1 + random_() % 3);
    if (!Made(cuMemCreate(&memory->handle, memory->size, &properties, 0))) return false;
    Check("reserve", cuMemAddressReserve(&memory->value, memory->size, 0, 0, 0));
    Check("map", cuMemMap(memory->value, memory->size, 0, memory->handle, 0));
    if (random_() % 2 == 0) {  // takes and drops a reference
      CUmemGenericAllocationHandle again = 0;
      void* address = reinterpret_cast<void*>(memory->value);
      Check("retain", cuMemRetainAllocationHandle(&again, address));
      Check("release", cuMemRelease(again));
    }
    return true;
  }

  static bool Made(CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY) Check("allocate", result);
    return result == CUDA_SUCCESS;
  }

  // Creates a context and allocates in it. Some of the memory is freed, the rest ends with the
  // context.
  void LiveInAContext() {
    CUcontext own = nullptr;
    Check("cuCtxCreate", cuCtxCreate(&own, nullptr, 0, 0));
    for (unsigned int i = random_() % 20; i > 0; --i) {
      Memory memory;
      // Virtual memory belongs to no context.
      if (Allocate(kVirtual, &memory) && random_() % 2 == 0) Free(memory);
    }
    Check("cuCtxDestroy", cuCtxDestroy(own));
    Check("cuCtxSetCurrent", cuCtxSetCurrent(context_));
  }

  CUcontext context_;
  Exchange* exchange_;
  std::minstd_rand random_;
};

}  // namespace

int main(int argc, char** argv) {
  int threads = 4, count = 500;
  unsigned int seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--count") == 0) count = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoul(argv[i + 1], nullptr, 10);
  }
  CUcontext context = nullptr;
  Check("cuInit", cuInit(0));
  Check("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
  Exchange exchange;
  // A profiler starts at the first call. Other threads wait for that only for a limited time: on a
  // busy machine their calls would be counted as missing, which is not tested here.
  CUdeviceptr first = 0;
  Check("cuCtxSetCurrent", cuCtxSetCurrent(context));
  Check("allocate", cuMemAlloc(&first, 1));
  Check("free", cuMemFree(first));
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { Worker(context, &exchange, seed + i).Run(count); });
  }
  for (std::thread& thread : running) thread.join();
  Worker last(context, &exchange, seed);
  std::minstd_rand random(seed);
  Memory memory;
  while (exchange.Take(random, &memory)) last.Free(memory);
  return failures == 0 ? 0 : 1;
}
