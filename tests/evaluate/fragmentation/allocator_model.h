// tests/evaluate/fragmentation/allocator_model.h
//
// AllocatorModel: a caching allocator on a device of limited memory, which writes the recording that
// its calls would leave. It knows what is free in it and why: the truth for evaluators.
//
// The rules are those of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp, 2.6): sizes rounded
// to 512 B, a small and a large pool for each stream, segments of 2 MiB, 20 MiB or the size rounded to
// 2 MiB, best fit, splitting, joining of free neighbours, on failure: give back what is free as a
// whole, ask again, give up.
//
// Thread safety: one thread.

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
    uint64_t others_bytes = 0;            // of other processes
    std::optional<uint64_t> limit_bytes;  // of the allocator's own
    bool has_nvml = true;
  };
  using Stack = analysis::EventScript::Functions;
  static constexpr uint64_t kPid = 12, kOtherPid = 77;

  // `script` must outlive it.
  AllocatorModel(analysis::EventScript& script, const Device& device);

  // The block's address; nullopt: out of memory, which the recording has with all that leads to it.
  // In a private pool other than 0.
  std::optional<uint64_t> Malloc(uint64_t bytes, uint64_t stream, const Stack& stack,
                                 uint64_t pool = 0);
  void Free(uint64_t address);
  // Another stream still uses it.
  void FreeAwaiting(uint64_t address, uint64_t other_stream);
  // The other streams are done with all such blocks.
  void FinishStreams();
  void EmptyCache();
  // What is allocated on `stream` until the end is of a pool of its own, and nothing is given back.
  void BeginCapture(uint64_t stream, uint64_t pool);
  void EndCapture();

  // Of the driver, beside the allocator: false where it has no more.
  bool DriverMalloc(uint64_t bytes, const Stack& stack);
  void DriverFree();  // what was allocated last
  void SetOthers(uint64_t bytes) { device_.others_bytes = bytes; }
  void SetContext(uint64_t bytes) { device_.context_bytes = bytes; }
  // What NVML or cudaMemGetInfo say now.
  void Sample();

  struct Truth {
    uint64_t reserved = 0, allocated = 0;
    uint64_t releasable = 0, pinned = 0, stream = 0, private_pool = 0, awaiting = 0;
    uint64_t largest = 0;  // for the stream
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
  uint64_t Take(const Place& place, uint64_t bytes);  // returns what the block has
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
