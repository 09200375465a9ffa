// analysis/trace/memory_event.h
//
// What an event that concerns memory refers to: a heap, and a place that can hold one thing at a
// time. HeldMemory (analysis/trace/held_memory.h) follows what is at each place.
//
// Thread safety: pure functions; MemoryNames: one thread at a time.

#ifndef GMT_ANALYSIS_TRACE_MEMORY_EVENT_H_
#define GMT_ANALYSIS_TRACE_MEMORY_EVENT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/definitions.h"
#include "format/event.h"

namespace gmt::analysis {

// Heaps by index in Trace::heaps; the first two always exist.
inline constexpr uint32_t kDriverHeap = 0;
inline constexpr uint32_t kHostHeap = 1;
inline constexpr int32_t kHostDevice = -1;
inline constexpr uint32_t kNoContext = UINT32_MAX;

// The API of events that report memory from before an attach.
inline constexpr char kBeforeAttachApi[] = "(before attach)";

inline bool Failed(const format::Event& event) {
  return event.has(format::kHasResult) && event.result != 0;
}
// Whether a call or an allocator failed for lack of memory. A call that fails for another reason
// did not lack memory: PyTorch first asks for memory that other machines can map, which few
// machines permit, and then without that.
inline bool IsLackOfMemory(uint32_t result) {
  constexpr uint32_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
  return result == 0 || result == kOutOfMemory;  // 0: the reason was not recorded
}
inline bool LackedMemory(const format::Event& event) { return IsLackOfMemory(event.result); }
// Memory that another process or API owns is counted by its owner.
inline bool IsForeign(Memory memory) {
  return memory == IPC || memory == EXTERNAL || memory == GRAPHICS || memory == MULTICAST;
}
// Memory that a framework or the program itself distributes, within that of the driver.
inline bool IsFrameworks(Memory memory) { return memory == BLOCK || memory == REGION; }
inline bool IsArray(Memory memory) { return memory == ARRAY || memory == MIPMAPPED; }

// Returns the address, or the handle of physical memory, which has no address. Some logs store the
// handle in the address field.
inline uint64_t ValueOf(const format::Event& event) {
  const bool physical = event.kind == CREATE || event.kind == RELEASE;
  return physical && event.address == 0 ? event.handle : event.address;
}

// Handles, addresses and the blocks of each heap are in separate spaces, because a segment's first
// block has the segment's own address.
enum Space : uint32_t { kDeviceSpace, kArraySpace, kPhysicalSpace, kHostSpace, kFirstBlockSpace };

struct MemoryPlace {
  uint64_t value = 0;
  uint32_t space = 0;  // Space; the blocks of heap h are in kFirstBlockSpace + h

  bool is_block() const { return space >= kFirstBlockSpace; }
  bool operator==(const MemoryPlace&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const MemoryPlace& p) {
    return H::combine(std::move(h), p.value ^ uint64_t{p.space} << 56);
  }
};

struct MemoryPlaces {
  std::array<MemoryPlace, 4> all;
  uint32_t count = 1;

  const MemoryPlace& front() const { return all[0]; }
  const MemoryPlace* begin() const { return all.data(); }
  const MemoryPlace* end() const { return all.data() + count; }
};

// Returns the place of the memory that an event of `heap` refers to.
inline MemoryPlace PlaceOf(uint32_t heap, Memory memory, uint64_t value) {
  if (heap > kHostHeap) return {value, kFirstBlockSpace + heap};
  if (heap == kHostHeap) return {value, kHostSpace};
  return {value, static_cast<uint32_t>(IsArray(memory) ? kArraySpace : kDeviceSpace)};
}
// Returns the places that the event may refer to, the likeliest first: an event log may omit the
// kind of memory that is freed.
MemoryPlaces PlacesOf(const format::Event& event, uint32_t heap);
// Returns the first of them.
inline MemoryPlace LikeliestPlaceOf(const format::Event& event, uint32_t heap) {
  if (heap > kHostHeap && event.kind != CREATE && event.kind != RELEASE)
    return PlaceOf(heap, event.memory, event.address);
  return PlacesOf(event, heap).front();
}

// The names of heaps, and of the API that reports memory from before an attach.
class MemoryNames {
 public:
  // REQUIRES: `definitions` outlives this object and contains what each event refers to.
  explicit MemoryNames(const format::Definitions& definitions) : definitions_(&definitions) {}

  // Returns the index of the event's heap in `heaps`, to which it adds a new one.
  uint32_t HeapOf(const format::Event& event, std::vector<std::string>* heaps) {
    const bool is_host = event.memory == PINNED || event.memory == REGISTERED ||
                         event.kind == REGISTER || event.kind == UNREGISTER;
    if (is_host) return kHostHeap;
    return event.heap == last_string_ ? last_heap_ : HeapNamed(event.heap, heaps);
  }
  // Returns whether the event reports memory that was held before an attach.
  bool IsBeforeAttach(const format::Event& event);

 private:
  uint32_t HeapNamed(uint32_t string, std::vector<std::string>* heaps);

  const format::Definitions* definitions_;
  absl::flat_hash_map<uint32_t, uint32_t> heap_by_string_;
  // The last one looked up: most events are of one heap.
  uint32_t last_string_ = UINT32_MAX, last_heap_ = 0;
  uint32_t before_attach_ = 0;  // string id, once known
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_MEMORY_EVENT_H_
