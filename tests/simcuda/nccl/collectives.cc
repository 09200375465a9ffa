// The operations of the NCCL stand-in. A rank receives its own contribution in its own slot and in
// place of the others' contributions, so results have the right shape and are self-consistent. Each
// operation is also one empty kernel on the stream.
#include <cstdint>

#include "tests/simcuda/math/library_memory.h"
#include "tests/simcuda/math/math_launch.h"
#include "tests/simcuda/nccl/communicator.h"

namespace {

// `copy` returns false when a copy failed.
template <typename Copy>
ncclResult_t Run(ncclComm* communicator, int type, cudaStream_t stream, Copy copy) {
  if (communicator == nullptr || type < 0 || size_t(type) >= std::size(kNcclTypeSizes)) {
    return ncclInvalidArgument;
  }
  return sim::RunOrDefer([=] {
    sim::CurrentDevice current(communicator->device());
    if (ncclResult_t result = communicator->Connect(); result != ncclSuccess) return result;
    bool done = copy() && sim::LaunchMathKernel(stream) == CUDA_SUCCESS;
    return done ? ncclSuccess : ncclUnhandledCudaError;
  });
}

size_t Bytes(size_t count, int type) { return count * kNcclTypeSizes[type]; }

bool Copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (to == from || bytes == 0) return true;
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream) == cudaSuccess;
}

void* Slot(const void* base, size_t index, size_t bytes) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(base) + index * bytes);
}

// Copies `from` into the slot of each rank, or only of this rank if the others are not known.
bool CopyToAll(ncclComm* communicator, void* to, const void* from, size_t bytes,
               cudaStream_t stream) {
  for (int rank = 0; rank < communicator->ranks(); ++rank) {
    if (rank != communicator->rank() && !communicator->others_known()) continue;
    if (!Copy(Slot(to, rank, bytes), from, bytes, stream)) return false;
  }
  return true;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, int type, int,
                           ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream,
             [=] { return Copy(to, from, Bytes(count, type), stream); });
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, int type, int, int root,
                        ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [=] {
    return communicator->rank() != root || Copy(to, from, Bytes(count, type), stream);
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [=] {
    return communicator->rank() != root || Copy(to, from, Bytes(count, type), stream);
  });
}

ncclResult_t ncclBcast(void* buffer, size_t count, int type, int root, ncclComm_t communicator,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, int type, int,
                               ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [=] {
    size_t bytes = Bytes(count, type);
    return Copy(to, Slot(from, communicator->rank(), bytes), bytes, stream);
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, int type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream,
             [=] { return CopyToAll(communicator, to, from, Bytes(count, type), stream); });
}

ncclResult_t ncclAlltoAll(const void* from, void* to, size_t count, int type,
                          ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [=] {
    size_t bytes = Bytes(count, type);
    return CopyToAll(communicator, to, Slot(from, communicator->rank(), bytes), bytes, stream);
  });
}

ncclResult_t ncclGather(const void* from, void* to, size_t count, int type, int root,
                        ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [=] {
    return communicator->rank() != root ||
           CopyToAll(communicator, to, from, Bytes(count, type), stream);
  });
}

ncclResult_t ncclScatter(const void* from, void* to, size_t count, int type, int root,
                         ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [=] {
    size_t bytes = Bytes(count, type);
    return communicator->rank() != root || Copy(to, Slot(from, root, bytes), bytes, stream);
  });
}

ncclResult_t ncclSend(const void*, size_t, int type, int, ncclComm_t communicator,
                      cudaStream_t stream) {
  return Run(communicator, type, stream, [] { return true; });
}

ncclResult_t ncclRecv(void*, size_t, int type, int, ncclComm_t communicator, cudaStream_t stream) {
  return Run(communicator, type, stream, [] { return true; });
}

}  // extern "C"
#pragma GCC visibility pop
