// A communicator of the NCCL stand-in: a rank among others with which it never communicates, and
// the device memory that NCCL would hold for it. The sizes are synthetic; the calls are NCCL's.
//
// Thread safety: as in NCCL, one thread at a time for each communicator.
#ifndef TESTS_SIMCUDA_NCCL_COMMUNICATOR_H_
#define TESTS_SIMCUDA_NCCL_COMMUNICATOR_H_

#include <functional>
#include <vector>

#include "tests/simcuda/nccl/api.h"

struct ncclComm {
 public:
  static constexpr size_t kStateSize = size_t{192} << 10;  // cudaMalloc, at the beginning
  static constexpr size_t kQueueSize = size_t{256} << 10;  // pinned, at the beginning
  static constexpr size_t kChannelSize = size_t{4} << 20;  // cuMemCreate, at the first operation
  static constexpr int kChannels = 2;

  // `others_known`: false for a part of another communicator, whose number of ranks could be
  // determined only by communicating with them; `ranks` is then an upper bound.
  static ncclResult_t Make(int ranks, int rank, bool others_known, ncclComm** communicator);
  ~ncclComm();

  // Takes the channels' memory at the first call.
  ncclResult_t Connect();

  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  int device() const { return device_; }
  bool others_known() const { return others_known_; }

 private:
  ncclComm(int ranks, int rank, bool others_known)
      : ranks_(ranks), rank_(rank), others_known_(others_known) {}

  int ranks_;
  int rank_;
  bool others_known_;
  int device_ = 0;
  bool connected_ = false;
  void* state_ = nullptr;
  void* queue_ = nullptr;
  std::vector<void*> channels_;
};

namespace sim {

// Makes a device current during its lifetime.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    cudaGetDevice(&before_);
    cudaSetDevice(device);
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

// Runs `operation` now, or at the end of the group that this thread is in.
ncclResult_t RunOrDefer(std::function<ncclResult_t()> operation);

}  // namespace sim

#endif  // TESTS_SIMCUDA_NCCL_COMMUNICATOR_H_
