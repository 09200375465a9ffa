// A stand-in for NCCL: communicators, groups and memory. No rank waits for or communicates with
// another one, so a single process may be one rank of many.
#include <sys/random.h>

#include <cstdint>
#include <vector>

#include "tests/simcuda/math/library_memory.h"
#include "tests/simcuda/nccl/communicator.h"

ncclResult_t ncclComm::Make(int ranks, int rank, bool others_known, ncclComm** communicator) {
  if (communicator == nullptr || ranks < 1 || rank < 0 || rank >= ranks) {
    return ncclInvalidArgument;
  }
  *communicator = nullptr;
  auto* made = new ncclComm(ranks, rank, others_known);
  if (cudaGetDevice(&made->device_) != cudaSuccess ||
      cudaMalloc(&made->state_, kStateSize) != cudaSuccess ||
      cudaHostAlloc(&made->queue_, kQueueSize, cudaHostAllocMapped) != cudaSuccess) {
    delete made;
    return ncclUnhandledCudaError;
  }
  *communicator = made;
  return ncclSuccess;
}

ncclComm::~ncclComm() {
  sim::CurrentDevice current(device_);
  for (void* channel : channels_) sim::UnmapMemory(channel);
  cudaFree(state_);
  cudaFreeHost(queue_);
}

ncclResult_t ncclComm::Connect() {
  if (connected_) return ncclSuccess;
  while (channels_.size() < kChannels) {
    void* channel = sim::MapMemory(kChannelSize);
    if (channel == nullptr) return ncclUnhandledCudaError;
    channels_.push_back(channel);
  }
  connected_ = true;
  return ncclSuccess;
}

namespace {

struct Group {
  int depth = 0;
  std::vector<std::function<ncclResult_t()>> operations;
};
thread_local Group group;

ncclResult_t Destroy(ncclComm* communicator) {
  if (communicator == nullptr) return ncclInvalidArgument;
  delete communicator;
  return ncclSuccess;
}

}  // namespace

ncclResult_t sim::RunOrDefer(std::function<ncclResult_t()> operation) {
  if (group.depth == 0) return operation();
  group.operations.push_back(std::move(operation));
  return ncclSuccess;
}

#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  std::vector<std::function<ncclResult_t()>> operations = std::move(group.operations);
  group.operations.clear();
  for (auto& operation : operations) {
    if (result == ncclSuccess) result = operation();
  }
  return result;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  ssize_t filled = getrandom(id->internal, sizeof id->internal, 0);
  return filled == sizeof id->internal ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId, int rank) {
  return ncclComm::Make(ranks, rank, true, communicator);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId, int rank,
                                    ncclConfig_t*) {
  return ncclComm::Make(ranks, rank, true, communicator);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* communicator, int ranks, int rank, int,
                                      ncclUniqueId*, ncclConfig_t*) {
  return ncclComm::Make(ranks, rank, true, communicator);
}

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* devices) {
  for (int rank = 0; rank < count; ++rank) {
    sim::CurrentDevice current(devices == nullptr ? rank : devices[rank]);
    ncclResult_t result = ncclComm::Make(count, rank, true, &communicators[rank]);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

// If all keys differ, as PyTorch's do, `key` is the rank in the new communicator.
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* communicator,
                           ncclConfig_t*) {
  if (parent == nullptr || communicator == nullptr) return ncclInvalidArgument;
  *communicator = nullptr;
  if (color == kNcclSplitNoColor) return ncclSuccess;
  sim::CurrentDevice current(parent->device());
  return ncclComm::Make(parent->ranks(), key, false, communicator);
}

ncclResult_t ncclCommShrink(ncclComm_t parent, int* excluded, int count, ncclComm_t* communicator,
                            ncclConfig_t*, int) {
  if (parent == nullptr || communicator == nullptr) return ncclInvalidArgument;
  int rank = parent->rank();
  for (int i = 0; i < count; ++i) rank -= excluded[i] < parent->rank() ? 1 : 0;
  sim::CurrentDevice current(parent->device());
  return ncclComm::Make(parent->ranks() - count, rank, parent->others_known(), communicator);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) { return Destroy(communicator); }
ncclResult_t ncclCommAbort(ncclComm_t communicator) { return Destroy(communicator); }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommRevoke(ncclComm_t, int) { return ncclSuccess; }

ncclResult_t ncclCommCount(ncclComm_t communicator, int* count) {
  *count = communicator->ranks();
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t communicator, int* device) {
  *device = communicator->device();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t communicator, int* rank) {
  *rank = communicator->rank();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "the simulated operation failed";
}

ncclResult_t ncclMemAlloc(void** address, size_t size) {
  if (address == nullptr || size == 0) return ncclInvalidArgument;
  *address = sim::MapMemory(size);
  return *address != nullptr ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* address) {
  if (address == nullptr) return ncclSuccess;
  return sim::UnmapMemory(address) == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

// The handle of a registration is its address.
ncclResult_t ncclCommRegister(ncclComm_t, void* address, size_t, void** handle) {
  *handle = address;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t, void*) { return ncclSuccess; }

ncclResult_t ncclCommWindowRegister(ncclComm_t, void* address, size_t, void** window, int) {
  *window = address;
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t, void*) { return ncclSuccess; }

ncclResult_t ncclRedOpCreatePreMulSum(int* operation, void*, int, int, ncclComm_t) {
  *operation = kNcclOperations;
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(int, ncclComm_t) { return ncclSuccess; }

// Every exported function that is not implemented jumps here (CMakeLists.txt, "stubs").
ncclResult_t SimNcclUnsupported() { return ncclInvalidUsage; }

}  // extern "C"
#pragma GCC visibility pop
