// analysis/leaks/held_memory.h
//
// HeldMemory: what is held after the events so far, and the effect of each event. It applies the
// rules of a trace (analysis/trace/trace.h, T1 to T7) one event at a time, without history.
// TraceBuilder reads whole recordings; HeldMemory can run beside a program for days.
//
//   HeldMemory memory(definitions, listener);
//   memory.OnEvent(event);      // listener.OnBorn(piece), OnFreed(piece), ...
//
// Differences from TraceBuilder, which knows later events
//   H1  Driver memory becomes a framework's segment when the first block is seen in it. It was born
//       as ordinary memory, and listener.OnSegment() revokes that.
//   H2  Whether a block waits for streams is decided at its free: a code location that records
//       events counts only after an event of it has been queried.
//   H3  Only the last kMostRefusable frees are remembered as ones that the driver may refuse.
//
// Memory: what is held, 88 bytes per piece. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_LEAKS_HELD_MEMORY_H_
#define GMT_ANALYSIS_LEAKS_HELD_MEMORY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "format/event.h"

namespace gmt::analysis {

using PieceId = uint32_t;
inline constexpr PieceId kNoPiece = UINT32_MAX;

struct HeldPiece {
  uint64_t value = 0, size = 0;  // address or handle; bytes
  uint64_t stream = 0;
  uint32_t space = 0, context = 0;
  uint32_t stack = 0, forward_stack = 0;
  int32_t device = 0;
  uint32_t heap = 0;
  uint8_t memory = 0;  // gmt::Memory
  bool is_segment = false, from_before = false, has_stream = false;
  bool awaits = false;    // freed, but not yet reusable
  bool released = false;  // physical memory that was released but is still mapped
  uint32_t mappings = 0;
  uint32_t waits_for = 0;  // number of events
};

class HeldMemory {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnBorn(PieceId id, const HeldPiece& piece) = 0;
    virtual void OnFreed(PieceId id, const HeldPiece& piece) = 0;  // the id may be reused
    virtual void OnSegment(PieceId id, const HeldPiece& piece) = 0;
    // Freed, and awaiting streams: OnFreed may follow.
    virtual void OnAwaits(PieceId id, const HeldPiece& piece) = 0;
    virtual void OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size) = 0;
  };

  // REQUIRES: both outlive this object; `definitions` contains what each event refers to.
  HeldMemory(const format::Definitions& definitions, Listener* listener)
      : definitions_(definitions), listener_(listener) {}

  // Ignores events that do not concern memory.
  void OnEvent(const format::Event& event);

  const std::vector<std::string>& heaps() const { return heaps_; }
  const HeldPiece& piece(PieceId id) const { return pieces_[id]; }
  size_t most_pieces() const { return pieces_.size(); }
  // Calls visit(id, piece) for all that is held or awaiting.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (PieceId id = 0; id < pieces_.size(); ++id) {
      if (used_[id]) visit(id, pieces_[id]);
    }
  }
  // Births and deaths so far.
  uint64_t steps() const { return steps_; }
  bool has_blocks() const { return has_blocks_; }

 private:
  enum Space : uint32_t { kDeviceSpace, kArraySpace, kPhysicalSpace, kHostSpace, kFirstBlockSpace };
  struct Place {
    uint64_t value = 0;
    uint32_t space = 0;

    bool operator==(const Place&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Place& p) {
      return H::combine(std::move(h), p.value ^ uint64_t{p.space} << 56);
    }
  };
  using Places = absl::InlinedVector<Place, 4>;
  struct Mapping {
    uint64_t size = 0;
    PieceId physical = kNoPiece;
    int32_t device = 0;
  };
  struct Reservation {
    uint64_t size = 0;
    bool holds_blocks = false;
  };
  struct Recorded {  // a CUDA event, as last recorded
    uint64_t site = 0, stream = 0;
    PieceId waiting = kNoPiece;
  };

  void OnAlloc(const format::Event& event);
  void OnFree(const format::Event& event);
  void OnFreeDone(const format::Event& event);
  void OnBlockFreed(const Place& place, PieceId id, const format::Event& event);
  void OnMap(const format::Event& event);
  void OnUnmap(const format::Event& event);
  void OnContextReset(const format::Event& event);
  void OnRecord(const format::Event& event);
  void OnDone(uint64_t object, bool by_allocator);
  void OnReuse(const format::Event& event);
  void ForgetRecords(uint32_t thread);
  uint32_t WaitsOf(PieceId id, uint32_t thread);

  uint32_t HeapOf(const format::Event& event);
  uint32_t HeapNamed(uint32_t string_id);
  bool IsBeforeAttach(const format::Event& event);
  Place PlaceOf(uint32_t heap, Memory memory, uint64_t value) const;
  Places PlacesOf(const format::Event& event, uint32_t heap) const;

  PieceId Add(const format::Event& event, const Place& place, uint32_t heap);
  void EndPiece(PieceId id);
  void Await(const Place& place, PieceId id);
  void EndAwaiting(PieceId id);
  void EndMapping(uint64_t address);
  void MarkSegment(PieceId id);
  void MarkSegments(const HeldPiece& block);
  bool MarkMappings(uint64_t start, uint64_t end);
  std::pair<const uint64_t, Reservation>* ReservationOf(uint64_t address);
  PieceId AllocationAround(int32_t device, uint64_t address) const;

  const format::Definitions& definitions_;
  Listener* const listener_;
  std::vector<std::string> heaps_ = {"driver", "host"};
  absl::flat_hash_map<uint32_t, uint32_t> heap_by_string_;
  uint32_t last_heap_string_ = UINT32_MAX, last_heap_ = 0;
  uint32_t before_attach_ = 0;  // string id, once known

  std::vector<HeldPiece> pieces_;
  std::vector<bool> used_;
  std::vector<PieceId> unused_;
  absl::flat_hash_map<Place, PieceId> held_;
  absl::flat_hash_map<Place, PieceId> awaiting_;
  absl::btree_map<std::pair<int32_t, uint64_t>, PieceId> awaiting_blocks_;
  absl::flat_hash_map<Place, HeldPiece> refusable_;  // frees whose end was not seen
  absl::btree_map<std::pair<int32_t, uint64_t>, PieceId> ranges_;
  absl::btree_map<uint64_t, Mapping> mappings_;
  absl::btree_map<uint64_t, Reservation> reservations_;
  absl::flat_hash_map<uint64_t, Recorded> recorded_;
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> by_thread_;
  absl::flat_hash_set<uint64_t> confirmed_;  // sites
  bool states_completions_ = false, has_blocks_ = false, has_gaps_ = false;
  uint64_t steps_ = 0;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_HELD_MEMORY_H_
