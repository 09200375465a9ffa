// format/recurring_addresses.h
//
// A caching allocator returns memory where earlier memory began or ended: a block that was freed,
// or the rest of one that was divided. The file therefore refers to that earlier row of
// acquisitions instead of repeating the address (Acquisitions.address_from in proto/gmt.proto).
//
//   row                     address_from   in the file
//   512 bytes at 0x1000     0              address 0x1000
//   256 bytes at 0x1200     1              - (the end of the previous row)
//   128 bytes at 0x1000     4              - (the begin of the row before that)
//
// Only rows of the same chunk are referred to, so that a lost chunk does not affect addresses in
// others.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_RECURRING_ADDRESSES_H_
#define GMT_FORMAT_RECURRING_ADDRESSES_H_

#include <cstdint>
#include <vector>

namespace gmt::format {

// Finds references. Some are not found, because its memory is limited.
class RecurringAddressWriter {
 public:
  RecurringAddressWriter() : slots_(kSlots) {}

  // Returns the reference for the next row, or 0.
  uint32_t Add(uint64_t address, uint64_t size) {
    Slot& begin = SlotOf(address);
    const bool is_known = begin.number >= first_ && begin.address == address;
    const uint64_t from = is_known ? next_ - begin.number : 0;
    begin = {address, next_++};
    SlotOf(address + size) = {address + size, next_++};
    return static_cast<uint32_t>(from);
  }
  // Starts the next chunk.
  void Clear() { first_ = next_; }

 private:
  // An address at which a row begins or ends. Begins and ends are numbered in order.
  struct Slot {
    uint64_t address = 0, number = 0;
  };
  static constexpr int kSlotBits = 14;  // 256 KiB
  static constexpr size_t kSlots = size_t{1} << kSlotBits;

  Slot& SlotOf(uint64_t address) {
    return slots_[address * 0x9E3779B97F4A7C15 >> (64 - kSlotBits)];
  }

  std::vector<Slot> slots_;
  uint64_t first_ = 1, next_ = 1;
};

// Resolves references within one chunk.
class RecurringAddressReader {
 public:
  // Allocates memory for `expected_rows` at once.
  explicit RecurringAddressReader(size_t expected_rows) { known_.reserve(2 * expected_rows); }

  // Returns false if there is no such row.
  bool Find(uint32_t from, uint64_t* address) const {
    if (from == 0 || from > known_.size()) return false;
    *address = known_[known_.size() - from];
    return true;
  }
  void Add(uint64_t address, uint64_t size) {
    known_.push_back(address);
    known_.push_back(address + size);
  }

 private:
  std::vector<uint64_t> known_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_RECURRING_ADDRESSES_H_
