// format/acquisition_history.h
//
// AcquisitionHistory: finds the row of a file segment's acquisitions that a free ends or that a
// ROLE event refers to. Writer and reader each keep one and feed it the same rows, so that the
// file need not repeat address, size and other fields for every free:
//
//   row   0 alloc A     1 alloc B     2 alloc C
//         free A: distance 3 (three rows back from the next row, 3), same = all fields: no further
//         byte
//
// The history keeps only the last row of each place (space, heap, device, address), and only until
// the event that ends it. Its memory is therefore bounded by what a process holds. A second free of
// the same memory is written in full.
//
// A kept row has a slot. The slot is found by place or by row number. A window covers the newest
// rows, where nearly every free finds its allocation; a table covers older rows. The table of
// places is not changed when a row ends, because an allocator soon returns the same place. Such an
// entry is out of date: its slot does not hold its place. When most are, they are removed.
//
// The table costs two lookups for each allocation. A reader does without it for allocations,
// because it only looks for rows by number; so does a writer that knows what is live, which keeps
// the slot of each allocation itself. Their histories keep an allocation whose free was lost even
// if its place is used again, unless the writer passes its slot or forgets it.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_ACQUISITION_HISTORY_H_
#define GMT_FORMAT_ACQUISITION_HISTORY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "format/event.h"

namespace gmt::format {

// Fields of a free or a role that equal those of its allocation. These are bits of Returns.same and
// Roles.same in the file: never renumber them.
enum Same : uint32_t {
  kSameHeap = 1u << 0,
  kSameMemory = 1u << 1,
  kSameDevice = 1u << 2,
  kSameContext = 1u << 3,
  kSameAddress = 1u << 4,
  kSameSize = 1u << 5,
  kSameStream = 1u << 6,
  kSamePool = 1u << 7,
};

// What is kept of an acquisition: its row, its kind, and the fields that a free may have in common
// with it.
struct alignas(64) Acquired {  // a cache line
  uint64_t row = 0;
  uint64_t address = 0, size = 0, stream = 0, pool = 0;
  uint32_t present = 0;  // set of Present
  uint32_t heap = 0, device = 0, context = 0;
  Memory memory = MEMORY_UNSPECIFIED;
  Kind kind = KIND_UNSPECIFIED;  // KIND_UNSPECIFIED: the slot is unused
};

// The slot of the last acquisition at a place. It may be out of date: a history checks that it
// still holds the place.
using AcquisitionSlot = uint32_t;
inline constexpr AcquisitionSlot kNoAcquisitionSlot = UINT32_MAX;

// Fill in the fields about memory that `event`, a free or a ROLE, omits, and mark them as present.
void CompleteReturn(const Acquired& acquired, Event* event);
void CompleteRole(const Acquired& acquired, Event* event);

class AcquisitionHistory {
 public:
  // How allocations are found; other acquisitions have a table of places in any case.
  enum class Finds { kByPlace, kByRowOrSlot };

  explicit AcquisitionHistory(Finds allocations = Finds::kByPlace)
      : has_places_(allocations == Finds::kByPlace) {}

  uint64_t rows() const { return rows_; }
  // Continues with row number `rows`. Rows may have been lost; they are not found.
  void ContinueAt(uint64_t rows) { rows_ = rows; }

  // Adds the next row, and returns its slot, or kNoAcquisitionSlot if it is not kept. Replaces the
  // row in `last`, if that is still one of the same place. REQUIRES: an event of the family
  // kAcquisition.
  AcquisitionSlot Add(const Event& event, AcquisitionSlot last = kNoAcquisitionSlot);

  // Returns the rows that are kept, in their order.
  std::vector<Acquired> Kept() const;
  // Adds a row of another history's Kept(), to continue as that one would. REQUIRES: their order.
  void AddKept(const Acquired& acquired);

  // Returns the acquisition that `event`, a free or a ROLE, refers to, or null. Valid until the
  // next Add() or Ended(). `last` is the slot of the last acquisition at the place, and is needed
  // only without a table of places.
  const Acquired* AcquisitionOf(const Event& event,
                                AcquisitionSlot last = kNoAcquisitionSlot) const;
  // Returns the row `distance` rows back, or null. Valid until the next Add() or Ended().
  const Acquired* Find(uint64_t distance) const;
  // Returns the distance of a row for Find(); 0 for null.
  uint64_t DistanceOf(const Acquired* acquired) const {
    return acquired == nullptr ? 0 : rows_ - acquired->row;
  }

  // Records that `event` of the family kReturn ended a row of this history (null: an unknown one).
  // Forgets the row if no further event can refer to it: after a free of an allocator at once, but
  // after a free of the driver only when its result is known.
  void Ended(const Event& event, const Acquired* acquired);
  // Forgets the allocation in `slot`, if it is still one at the place of `event`, because no event
  // will end it.
  void Forget(const Event& event, AcquisitionSlot slot);

 private:
  struct Place {
    uint64_t space_and_device;
    uint64_t heap;
    uint64_t address;

    bool operator==(const Place&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Place& p) {
      return H::combine(std::move(h), p.address ^ p.heap << 48 ^ p.space_and_device << 20);
    }
  };
  static constexpr uint64_t kWindow = uint64_t{1} << 16;  // rows

  template <typename Source>
  static Place PlaceOf(const Source& source);  // an Event or Acquired
  // Returns the slot for the row of `acquired`, an Event or Acquired; none if it is not kept.
  template <typename Source>
  AcquisitionSlot Insert(const Source& acquired, uint64_t row, AcquisitionSlot last);
  template <typename Source>
  AcquisitionSlot SlotFor(const Source& acquired, AcquisitionSlot last);
  bool Holds(AcquisitionSlot slot, const Place& place) const;
  AcquisitionSlot TakeUnusedSlot();
  void Leave(AcquisitionSlot slot);
  void Forget(AcquisitionSlot slot);

  bool has_places_;
  uint64_t rows_ = 0;
  absl::flat_hash_map<Place, AcquisitionSlot> slot_of_place_;  // some are out of date
  std::vector<Acquired> slots_;
  std::vector<AcquisitionSlot> unused_slots_;
  std::vector<AcquisitionSlot> window_;  // by row modulo its length; empty before the first row
  absl::flat_hash_map<uint64_t, AcquisitionSlot>
      slot_of_old_row_;  // rows that have left the window
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_ACQUISITION_HISTORY_H_
