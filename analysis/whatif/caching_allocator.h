// analysis/whatif/caching_allocator.h
//
// CachingAllocator: a model of PyTorch's caching allocator on one device
// (c10/cuda/CUDACachingAllocator.cpp). It is given the requests of a program and decides, as
// PyTorch would with these settings, which segments the driver is asked for and when they are
// returned.
//
//   segment |-- block --|-- free --|-- block --|-------- free --------|
//   pages   |-- block --|---- free ----|....not mapped....|-- block --|....not mapped....
//
//   A1  A request gets the smallest free block that is large enough, of its stream and pool; the
//       one with the lowest address among equals. The rest of the block is split off, unless too
//       little would be left or the block may not be split.
//   A2  Without such a block it gets a new segment, or new pages of an expandable one. If the device
//       is full, cached memory is released and the driver is asked again.
//   A3  Adjacent free blocks of a segment are merged. A block that other streams use becomes free
//       when they are done.
//   A4  Segments without a block are released by EmptyCache(), by a request that finds the device
//       full, and by garbage collection.
//
// Addresses matter only for the choice among free blocks of equal size. Segments get those that the
// driver chose in the recording (SetAddresses), and further ones invented addresses above these. In
// another run the driver chooses others (ScatterAddresses).
//
// Thread safety: one thread at a time. Cost: O(log free blocks) a request.

#ifndef GMT_ANALYSIS_WHATIF_CACHING_ALLOCATOR_H_
#define GMT_ANALYSIS_WHATIF_CACHING_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "analysis/whatif/allocator_settings.h"
#include "analysis/whatif/free_list.h"

namespace gmt::analysis {

class CachingAllocator {
 public:
  // Numbers chosen by the caller, ideally small ones.
  using Allocation = uint32_t;
  struct Place {
    uint32_t stream = 0;
    uint32_t pool = 0;  // 0: the pool of everything outside graphs and the program's own pools
  };
  // A part of a segment that existed before the first request.
  struct Piece {
    uint64_t size = 0;
    std::optional<Allocation> block;  // nullopt: free
    bool is_awaited = false;          // freed, but other streams still use it
  };
  struct SegmentCall {
    uint64_t bytes = 0;
    bool is_release = false;
  };
  // By the size of a segment, the addresses of the segments of this size, in the order in which
  // they were allocated.
  using SegmentAddresses = absl::flat_hash_map<uint64_t, std::vector<uint64_t>>;

  // `capacity`: what the driver can provide to this allocator and to what SetOutside() reports.
  CachingAllocator(const AllocatorSettings& settings, uint64_t device_bytes, uint64_t capacity);

  // REQUIRES: called before any other function; `addresses` outlives this object.
  void SetAddresses(const SegmentAddresses& addresses);
  // Random addresses instead. REQUIRES: called before any other function; `seed` is not 0.
  void ScatterAddresses(uint32_t seed);
  // Device memory of the process that does not belong to this allocator.
  void SetOutside(uint64_t bytes) { outside_ = bytes; }
  // Adds a segment with its pieces in the order of their addresses, of which no two neighbours are
  // free. With expandable segments, an expandable one can grow behind them.
  void AddSegment(const Place& place, bool is_small, bool is_expandable,
                  const std::vector<Piece>& pieces);

  // Returns false if the request fails out of memory. REQUIRES: `allocation` is not in use.
  bool Allocate(Allocation allocation, uint64_t bytes, const Place& place);
  // These ignore allocations that are not in use, such as those whose request failed.
  void Free(Allocation allocation);
  void FreeWhenAwaited(Allocation allocation);  // other streams use it until Complete()
  void Complete(Allocation allocation);
  void EmptyCache();

  uint64_t reserved() const { return reserved_; }
  uint64_t peak_reserved() const { return peak_reserved_; }
  uint64_t allocated() const { return allocated_; }
  uint64_t peak_allocated() const { return peak_allocated_; }
  uint64_t retries() const { return retries_; }    // num_alloc_retries of PyTorch's statistics
  uint64_t failures() const { return failures_; }  // num_ooms
  // Segments, or pages of expandable ones, that the driver provided, and that were returned to it.
  uint64_t allocations() const { return allocations_; }
  uint64_t releases() const { return releases_; }
  // Whether the driver refused a request because the capacity was used up.
  bool was_refused() const { return was_refused_; }
  // The calls of the driver since the last call of this function.
  const std::vector<SegmentCall>& calls() const { return calls_; }
  void ForgetCalls() { calls_.clear(); }

 private:
  using BlockId = uint32_t;
  static constexpr BlockId kNoBlock = UINT32_MAX;

  enum class State : uint8_t { kAllocated, kAwaited, kFree, kUnmapped };
  struct Block {
    uint64_t address = 0, size = 0;
    BlockId previous = kNoBlock, next = kNoBlock;  // its neighbours in the segment
    uint32_t list = 0;
    State state = State::kFree;
    bool is_expandable = false;
    uint64_t free_since = 0;  // in requests
  };
  // The free memory of one stream in one pool, for small blocks or for large ones.
  struct List {
    FreeList free;
    absl::btree_set<std::pair<uint64_t, BlockId>> unmapped;  // by address
    bool is_small = false;
    uint32_t pool = 0;
  };

  uint32_t ListOf(const Place& place, bool is_small);
  BlockId NewBlock(const Block& block);
  void Drop(BlockId id) { unused_.push_back(id); }
  uint64_t ReserveAddresses(uint64_t bytes);

  BlockId TakeFree(uint32_t list, uint64_t size);
  std::optional<FreePiece> FindAmongExpandable(const FreeList& free, FreePiece piece) const;
  BlockId TakeNew(uint32_t list, uint64_t size);
  BlockId TakeExpandable(uint32_t list, uint64_t size);
  BlockId FindExpandable(const List& list, uint64_t size) const;
  uint64_t ExpandableBytes(uint32_t list) const;
  BlockId ReserveExpandable(uint32_t list);
  bool Map(BlockId id, uint64_t bytes);
  bool AskDriver(uint64_t bytes);
  void AddReserved(uint64_t bytes, uint64_t each);
  void AddReleased(uint64_t bytes, uint64_t each);

  bool IsWorthSplitting(const Block& block, uint64_t size) const;
  void SplitAfter(BlockId id, uint64_t size, State state_of_rest);
  void Insert(BlockId id);
  void Remove(BlockId id);
  void MergeWithNeighbours(BlockId id);
  void Absorb(BlockId id, BlockId neighbour);
  void MakeFree(BlockId id);

  bool IsWholeSegment(BlockId id) const;
  bool ReleaseOversize(uint32_t list, uint64_t size);
  void ReleaseCached();
  void ReleaseSegment(BlockId id);
  void Unmap(BlockId id);
  void CollectGarbage();

  uint64_t PageBytes(const List& list) const;
  uint64_t Limit() const;

  const AllocatorSettings settings_;
  const uint64_t device_bytes_, capacity_;
  const SegmentAddresses* addresses_ = nullptr;
  std::optional<uint64_t> scatter_;                       // state of the random addresses
  absl::flat_hash_map<uint64_t, size_t> used_addresses_;  // how many, by the size of the segment
  uint64_t outside_ = 0, next_address_ = uint64_t{1} << 40;
  uint64_t reserved_ = 0, peak_reserved_ = 0, allocated_ = 0, peak_allocated_ = 0;
  uint64_t retries_ = 0, failures_ = 0, lookups_ = 0;
  uint64_t allocations_ = 0, releases_ = 0;
  bool was_refused_ = false;

  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  std::vector<BlockId> in_use_;  // by allocation; kNoBlock: not in use
  std::vector<List> lists_;
  absl::flat_hash_map<uint64_t, uint32_t> list_numbers_;
  uint64_t last_key_ = UINT64_MAX;  // that was looked up in list_numbers_
  uint32_t last_list_ = 0;
  absl::flat_hash_map<Allocation, BlockId> awaited_;
  std::vector<SegmentCall> calls_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_CACHING_ALLOCATOR_H_
