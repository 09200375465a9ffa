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
// A reader only looks for rows by number, so its history has no table of places for allocations,
// and keeps an allocation whose free was lost even if its place is used again.
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

// Fill in the fields about memory that `event`, a free or a ROLE, omits, and mark them as present.
void CompleteReturn(const Acquired& acquired, Event* event);
void CompleteRole(const Acquired& acquired, Event* event);

class AcquisitionHistory {
 public:
  enum class For { kWriter, kReader };

  explicit AcquisitionHistory(For user = For::kWriter) : has_places_(user == For::kWriter) {}

  uint64_t rows() const { return rows_; }
  // Continues with row number `rows`. Rows may have been lost; they are not found.
  void ContinueAt(uint64_t rows) { rows_ = rows; }

  // Adds the next row. REQUIRES: an event of the family kAcquisition.
  void Add(const Event& event);

  // Returns the rows that are kept, in their order. REQUIRES: For::kWriter.
  std::vector<Acquired> Kept() const;
  // Adds a row of another history's Kept(), to continue as that one would. REQUIRES: their order.
  void AddKept(const Acquired& acquired);

  // Returns the acquisition that `event`, a free or a ROLE, refers to, or null. Valid until the
  // next Add() or Ended(). REQUIRES: For::kWriter.
  const Acquired* AcquisitionOf(const Event& event) const;
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
  // Returns the slot for the row of `acquired`, an Event or Acquired; null if it is not kept.
  template <typename Source>
  Acquired* Insert(const Source& acquired, uint64_t row);
  template <typename Source>
  uint32_t SlotFor(const Source& acquired);
  bool Holds(uint32_t slot, const Place& place) const;
  uint32_t TakeUnusedSlot();
  void Leave(uint32_t slot);

  bool has_places_;
  uint64_t rows_ = 0;
  absl::flat_hash_map<Place, uint32_t> slot_of_place_;  // some are out of date
  std::vector<Acquired> slots_;
  std::vector<uint32_t> unused_slots_;
  std::vector<uint32_t> window_;  // slots, by row modulo its length; empty before the first row
  absl::flat_hash_map<uint64_t, uint32_t> slot_of_old_row_;  // rows that have left the window
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_ACQUISITION_HISTORY_H_
