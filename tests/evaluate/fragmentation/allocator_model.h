// tests/evaluate/fragmentation/allocator_model.h
//
// AllocatorModel: a caching allocator on a device of limited memory. It writes the recording of its
// calls and knows which memory is free and why, which is the truth for evaluators.
//
// The rules are those of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp, 2.6): sizes are
// rounded to 512 B; each stream has a small and a large pool; segments have 2 MiB, 20 MiB or the
// size rounded to 2 MiB; best fit; free neighbours are joined. If the driver has no memory,
// entirely free segments are freed and the request is repeated once.
//
// Not thread-safe.

#ifndef GMT_TESTS_EVALUATE_FRAGMENTATION_ALLOCATOR_MODEL_H_
#define GMT_TESTS_EVALUATE_FRAGMENTATION_ALLOCATOR_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::evaluate {

class AllocatorModel {
 public:
  struct Device {
    uint64_t total_bytes = uint64_t{24} << 30;
    uint64_t context_bytes = uint64_t{400} << 20;
    uint64_t others_bytes = 0;            // used by other processes
    std::optional<uint64_t> limit_bytes;  // the allocator's own limit
    bool has_nvml = true;
  };
  using Stack = analysis::EventScript::Functions;
  static constexpr uint64_t kPid = 12, kOtherPid = 77;

  // REQUIRES: `script` outlives the model.
  AllocatorModel(analysis::EventScript& script, const Device& device);

  // Returns the block's address, or nullopt if out of memory; the failure and the attempts before
  // it are recorded. A `pool` other than 0 is a private one.
  std::optional<uint64_t> Malloc(uint64_t bytes, uint64_t stream, const Stack& stack,
                                 uint64_t pool = 0);
  void Free(uint64_t address);
  // Frees a block that `other_stream` still uses.
  void FreeAwaiting(uint64_t address, uint64_t other_stream);
  // Completes the other streams' use of all such blocks.
  void FinishStreams();
  void EmptyCache();
  // Until EndCapture(), allocations on `stream` come from `pool`, and no segment is freed.
  void BeginCapture(uint64_t stream, uint64_t pool);
  void EndCapture();

  // Allocates from the driver, bypassing the allocator. Returns false if it has no memory.
  bool DriverMalloc(uint64_t bytes, const Stack& stack);
  void DriverFree();  // frees the last one
  void SetOthers(uint64_t bytes) { device_.others_bytes = bytes; }
  void SetContext(uint64_t bytes) { device_.context_bytes = bytes; }
  // Records what NVML or cudaMemGetInfo report now.
  void Sample();

  struct Truth {
    uint64_t reserved = 0, allocated = 0;
    uint64_t releasable = 0, pinned = 0, stream = 0, private_pool = 0, awaiting = 0;
    uint64_t largest = 0;  // free piece that the stream can use
  };
  Truth TruthFor(uint64_t stream) const;
  uint64_t driver_free() const;
  uint64_t reserved() const { return reserved_; }
  uint64_t allocated() const { return allocated_; }
  uint64_t retries() const { return retries_; }

 private:
  enum class State { kFree, kLive, kAwaiting };
  struct Chunk {
    uint64_t size = 0;
    State state = State::kFree;
  };
  struct Segment {
    uint64_t size = 0, stream = 0, pool = 0;
    bool is_small = false;
    std::map<uint64_t, Chunk> chunks;  // by address
  };
  struct Place {
    uint64_t segment = 0, chunk = 0;
  };

  std::optional<Place> BestFit(uint64_t bytes, uint64_t stream, uint64_t pool) const;
  bool AddSegment(uint64_t bytes, uint64_t stream, uint64_t pool, const Stack& stack);
  uint64_t Take(const Place& place, uint64_t bytes);  // returns the block's size
  void Release(uint64_t address);
  void JoinNeighbours(Segment& segment, uint64_t address);
  uint64_t ReleaseFreeSegments();
  void Fail(uint64_t bytes, uint64_t stream, const Stack& stack);
  void MemGetInfo();
  Place Find(uint64_t address) const;

  analysis::EventScript& script_;
  Device device_;
  std::map<uint64_t, Segment> segments_;               // by address
  std::map<uint64_t, uint64_t> awaiting_;              // CUDA events, by block
  std::vector<std::pair<uint64_t, uint64_t>> driver_;  // address, bytes
  uint64_t next_address_ = uint64_t{0x7f} << 40, next_event_ = 1000;
  uint64_t reserved_ = 0, allocated_ = 0, driver_bytes_ = 0, retries_ = 0;
  std::optional<uint64_t> capture_stream_, capture_pool_;
};

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_FRAGMENTATION_ALLOCATOR_MODEL_H_
