// analysis/whatif/free_list.h
//
// FreeList: the free pieces of memory of one list of the allocator, by size and address.
//
// The piece that was inserted last is kept outside of the ordered set, because it is usually the
// next one to be taken or merged: a block is split off a piece, and is merged with the rest when it
// is freed. So neither changes the set.
//
// Thread safety: one thread at a time. Cost: O(log pieces) a call.

#ifndef GMT_ANALYSIS_WHATIF_FREE_LIST_H_
#define GMT_ANALYSIS_WHATIF_FREE_LIST_H_

#include <cstdint>
#include <optional>

#include "absl/container/btree_set.h"

namespace gmt::analysis {

struct FreePiece {
  uint64_t size = 0, address = 0;
  uint32_t block = UINT32_MAX;
  // No two pieces have the same address.
  friend bool operator<(const FreePiece& a, const FreePiece& b) {
    return a.size != b.size ? a.size < b.size : a.address < b.address;
  }
};

class FreeList {
 public:
  using Set = absl::btree_set<FreePiece>;

  void Insert(const FreePiece& piece) {
    if (last_) set_.insert(*last_);
    last_ = piece;
  }
  // REQUIRES: the piece is in the list.
  void Erase(const FreePiece& piece) {
    if (last_ && last_->address == piece.address) {
      last_.reset();
    } else {
      set_.erase(piece);
    }
  }
  // The smallest piece of at least this size, the one with the lowest address among equals.
  std::optional<FreePiece> FindAtLeast(uint64_t size) const {
    return First(set_.lower_bound(FreePiece{size, 0, 0}), last_ && last_->size >= size);
  }
  // The next piece in order.
  std::optional<FreePiece> FindAfter(const FreePiece& piece) const {
    return First(set_.upper_bound(piece), last_ && piece < *last_);
  }
  // All pieces in order. The reference is valid until the next call of another function.
  const Set& Ordered() {
    if (last_) set_.insert(*last_);
    last_.reset();
    return set_;
  }

 private:
  std::optional<FreePiece> First(Set::const_iterator found, bool is_last_possible) const {
    if (found == set_.end()) return is_last_possible ? last_ : std::nullopt;
    return is_last_possible && *last_ < *found ? *last_ : *found;
  }

  Set set_;
  std::optional<FreePiece> last_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_FREE_LIST_H_
