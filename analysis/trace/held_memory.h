// analysis/trace/held_memory.h
//
// HeldMemory: which memory is held at which place after the events so far. It carries out the rules
// T1, T5 and T6 of analysis/trace/trace.h, and decides which driver memory is a framework's
// segment.
// TraceBuilder records its results as rows; HeldPieces (analysis/leaks/held_pieces.h) follows them
// beside a program that runs for days.
//
//   event                        what the listener hears
//   Alloc A                      OnBorn(A); OnSegment for the memory in which a block lies
//   Alloc A, still held          OnEnded(A, kFreeLost), OnBorn(A)
//   Free A                       OnEnded(A, kFreed); physical memory only once it is unmapped too
//   FreeDone A, refused          OnRestored(A)
//   Reset of a context           OnEnded for all in it: blocks, then mappings, then driver memory
//
// The listener chooses the id of each piece of memory and keeps what else is known of it.
//
// The methods ignore calls that failed and memory of other owners, and must not be called from the
// listener. Cost: one or two hash look-ups per event. Memory: what is held, and the last
// kMaxRefusable frees. Thread safety: one thread at a time. Copies are independent.

#ifndef GMT_ANALYSIS_TRACE_HELD_MEMORY_H_
#define GMT_ANALYSIS_TRACE_HELD_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "analysis/trace/memory_event.h"
#include "format/event.h"

namespace gmt::analysis {

using HeldId = uint32_t;
inline constexpr HeldId kNoHeld = UINT32_MAX;

class HeldMemory {
 public:
  // Frees that the driver may still refuse: older ones are final.
  static constexpr size_t kMaxRefusable = 1024;

  enum class End { kFreed, kFreeLost, kContextReset };

  // A range of addresses that is backed by physical memory.
  struct Mapping {
    uint64_t size = 0;
    HeldId physical = kNoHeld;  // kNoHeld: created before the recording, or imported
    int32_t device = 0;
    uint32_t context = kNoContext;
    uint32_t tag = 0;  // what OnMapped() returned
  };

  class Listener {
   public:
    virtual ~Listener() = default;
    // Returns the id of the memory that the event reports.
    virtual HeldId OnBorn(const format::Event& event, const MemoryPlace& place) = 0;
    // Returns whether the event reports the birth of `id`, held at the same place.
    virtual bool IsBirthOf(HeldId /*id*/, const format::Event& /*event*/) { return false; }
    virtual void OnEnded(HeldId id, End end, const format::Event& event) = 0;
    // Returns false if `id` has been forgotten; it then remains freed.
    virtual bool OnRestored(HeldId id, const MemoryPlace& place) = 0;
    virtual void OnSegment(HeldId id) = 0;  // may be called again
    virtual void OnUnbacked(HeldId /*block*/) {}
    // A free of unknown memory. Returns the id of a row for it, kNoHeld if there is none.
    virtual HeldId OnFreeOfUnknown(const format::Event& event) = 0;
    // Returns a tag for the mapping.
    virtual uint32_t OnMapped(const format::Event& /*event*/, const Mapping& /*mapping*/) {
      return 0;
    }
    // `kFreeLost`: another mapping replaces it.
    virtual void OnUnmapped(const Mapping& /*mapping*/, End /*end*/,
                            const format::Event& /*event*/) {}
  };

  // Returns the id of the new memory; kNoHeld if the event reports none, or reports held memory.
  HeldId Alloc(const format::Event& event, uint32_t heap, Listener& listener);
  // Holds memory that a snapshot contains. REQUIRES: !Contains(place).
  void Hold(const format::Event& event, const MemoryPlace& place, HeldId id, Listener& listener);
  // Returns the id of the freed memory; kNoHeld if there is none.
  HeldId Free(const format::Event& event, uint32_t heap, Listener& listener);
  // REQUIRES: not the event of a block.
  void FreeDone(const format::Event& event, uint32_t heap, Listener& listener);
  void Reserve(const format::Event& event);
  void Unreserve(const format::Event& event) { reservations_.erase(event.address); }
  // Returns the id of the physical memory; kNoHeld if it is unknown.
  HeldId Map(const format::Event& event, Listener& listener);
  // One call may unmap several adjacent mappings. Returns the physical memory of the first.
  HeldId Unmap(const format::Event& event, Listener& listener);
  // Ends what is held in a context, or on a device. Does nothing if the event names neither.
  void Reset(const format::Event& event, Listener& listener);

  bool Contains(const MemoryPlace& place) const { return held_.contains(place); }
  HeldId Find(const MemoryPlace& place) const;
  bool IsMapped(uint64_t address) const { return mappings_.contains(address); }

  // Returns a copy whose memory has other ids, `moved` by the present one, and whose mappings have
  // the tags that `retag` returns, called in the order of their addresses. Frees are final in it.
  HeldMemory Renumbered(const std::vector<HeldId>& moved,
                        absl::FunctionRef<uint32_t(uint32_t tag)> retag) const;

 private:
  struct Held {
    uint64_t size = 0;
    HeldId id = kNoHeld;
    int32_t device = 0;
    uint32_t context = kNoContext;
  };
  struct Range {
    uint64_t size = 0;
    HeldId id = kNoHeld;
  };
  // A range that has been reported as a segment, valid for that version of ranges_.
  struct Segment {
    uint64_t start = 0, size = 0, version = 0;
    int32_t device = 0;
  };
  // Segments are remembered by the address of a block divided by this.
  static constexpr uint64_t kSegmentGranule = uint64_t{2} << 20;
  static constexpr size_t kMaxSegments = 1024;
  // Physical memory is held until it is released and unmapped.
  struct Physical {
    uint32_t mappings = 0;
    bool released = false;
  };
  // A reserved range of addresses. If a framework puts blocks in it, everything mapped there is one
  // segment.
  struct Reservation {
    uint64_t size = 0;
    bool holds_blocks = false;
  };
  using Ranges = absl::btree_map<std::pair<int32_t, uint64_t>, Range>;
  using Reservations = absl::btree_map<uint64_t, Reservation>;

  using HeldByPlace = absl::flat_hash_map<MemoryPlace, Held>;

  // Finds what the event frees if it is not in its likeliest place.
  HeldByPlace::iterator FindOther(const format::Event& event, uint32_t heap);
  static void SetHeld(const format::Event& event, const MemoryPlace& place, HeldId id, Held* held);
  void Index(const MemoryPlace& place, const Held& held);
  void Backed(const MemoryPlace& place, const Held& held, const format::Event& event,
              Listener& listener);
  void Release(const MemoryPlace& place, const Held& held, End end, const format::Event& event,
               Listener& listener);
  void EndHeld(const MemoryPlace& place, const Held& held, End end, const format::Event& event,
               Listener& listener);
  void ForgetPhysical(HeldId id);
  void MakeRefusable(const MemoryPlace& place, const Held& held);
  void EndMapping(uint64_t address, End end, const format::Event& event, Listener& listener);
  Ranges::const_iterator AllocationAround(int32_t device, uint64_t address) const;
  Reservations::iterator ReservationOf(uint64_t address);
  bool MarkSegments(const Held& block, uint64_t start, Listener& listener);
  bool MarkMappings(uint64_t start, uint64_t end, Listener& listener);
  bool IsInMappedMemory(uint64_t address) const;

  HeldByPlace held_;
  HeldByPlace freed_;  // by frees whose end was not seen
  absl::flat_hash_map<HeldId, Physical> physical_;
  // By (device, address): memory in which a block may lie.
  Ranges ranges_;
  uint64_t ranges_version_ = 1;  // incremented by every change of ranges_
  // A cache of the ranges in which blocks were allocated lately; empty before the first.
  std::vector<Segment> segments_;
  absl::btree_map<uint64_t, Mapping> mappings_;
  Reservations reservations_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_HELD_MEMORY_H_
