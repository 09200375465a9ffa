// collector/events/segments.h
//
// Segments: which driver memory has ever held a block of a framework, and how much that is. A
// caching allocator keeps such memory when the blocks are freed; without them, it looks like any
// other memory. Physical memory is found through the reservation that it is mapped into.
//
//   event                 bytes in segments   peak
//   alloc A, 20 MiB               0            0
//   block in A                   20           20 MiB, when A was allocated
//   free of A                     0           20 MiB
//
// Thread safety: one thread at a time. Cost: for a block, a look-up among the memory that has not
// held any, which is little: nothing if there is none.

#ifndef GMT_COLLECTOR_EVENTS_SEGMENTS_H_
#define GMT_COLLECTOR_EVENTS_SEGMENTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "collector/events/live_model.h"

namespace gmt::collector {

class Segments {
 public:
  // Each change of the live set (LiveObserver). REQUIRES: device and physical memory belongs to
  // this process.
  void OnBorn(const Place& place, const session::LiveValue& live);
  void OnEnded(const Place& place, const session::LiveValue& live);

  // Whether the device memory that begins at `address` has held a block.
  bool Contains(uint64_t address) const;

  struct Bytes {
    uint64_t now = 0, peak = 0;
    uint64_t peak_ns = 0;  // CLOCK_MONOTONIC
  };
  const Bytes& OnDevice(uint8_t device) const { return bytes_[device]; }

 private:
  struct Memory {
    uint64_t size = 0, born_ns = 0;
    uint8_t device = 0;
    bool is_segment = false;
  };
  struct Reservation {
    uint64_t size = 0;
    std::vector<uint64_t> mapped;  // handles
  };

  void OnBlock(uint64_t address);
  void OnMapping(uint64_t address, uint64_t handle);
  void ForgetMappingsOf(uint64_t handle);
  void Mark(Memory* memory);

  absl::flat_hash_map<Place, Memory> memory_;  // device and physical memory
  // What has not held blocks: device memory and its size, and reservations, by address.
  std::map<uint64_t, uint64_t> without_blocks_;
  std::map<uint64_t, Reservation> reservations_without_blocks_;
  std::map<uint64_t, uint64_t> reservations_;  // the others, and their sizes
  uint64_t last_born_ns_ = 0;                  // when the youngest segment was allocated
  std::array<Bytes, 256> bytes_{};
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_SEGMENTS_H_
