#include "analysis/whatif/caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <random>

#include "format/units.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kSmallestRest = 512;  // of a small or expandable block
constexpr uint64_t kSmallestLargeRest = kMiB;
constexpr uint64_t kSmallPage = 2 * kMiB;

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, uint64_t device_bytes,
                                   uint64_t capacity)
    : settings_(settings), device_bytes_(device_bytes), capacity_(capacity) {}

uint32_t CachingAllocator::ListOf(const Place& place, bool is_small) {
  const uint64_t key =
      uint64_t{place.pool} << 33 | uint64_t{place.stream} << 1 | (is_small ? 1 : 0);
  if (key == last_key_) return last_list_;
  const auto [it, is_new] = list_numbers_.try_emplace(key, static_cast<uint32_t>(lists_.size()));
  if (is_new) {
    lists_.emplace_back();
    lists_.back().is_small = is_small;
    lists_.back().pool = place.pool;
  }
  last_key_ = key;
  last_list_ = it->second;
  return last_list_;
}

CachingAllocator::BlockId CachingAllocator::NewBlock(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId id = unused_.back();
  unused_.pop_back();
  blocks_[id] = block;
  return id;
}

void CachingAllocator::SetAddresses(const SegmentAddresses& addresses) {
  addresses_ = &addresses;
  for (const auto& [bytes, starts] : addresses) {
    for (const uint64_t start : starts)
      next_address_ = std::max(next_address_, RoundUp(start + bytes, 2 * kMiB));
  }
}

void CachingAllocator::ScatterAddresses(uint32_t seed) { scatter_ = seed; }

uint64_t CachingAllocator::ReserveAddresses(uint64_t bytes) {
  if (scatter_) {
    std::mt19937_64 random(*scatter_);
    scatter_ = random();
    // Half of the range of the type, so that no segment exceeds it.
    return *scatter_ / 2 / kSmallPage * kSmallPage;
  }
  if (addresses_ != nullptr) {
    const auto recorded = addresses_->find(bytes);
    size_t& used = used_addresses_[bytes];
    if (recorded != addresses_->end() && used < recorded->second.size())
      return recorded->second[used++];
  }
  const uint64_t address = next_address_;
  next_address_ += RoundUp(bytes, 2 * kMiB);
  return address;
}

uint64_t CachingAllocator::PageBytes(const List& list) const {
  return list.is_small ? kSmallPage : settings_.large_segment_bytes;
}

uint64_t CachingAllocator::Limit() const {
  if (settings_.memory_fraction >= 1 || device_bytes_ == 0) return AllocatorSettings::kUnlimited;
  return static_cast<uint64_t>(settings_.memory_fraction * static_cast<double>(device_bytes_));
}

void CachingAllocator::AddSegment(const Place& place, bool is_small, bool is_expandable,
                                  const std::vector<Piece>& pieces) {
  const uint32_t list = ListOf(place, is_small);
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.size;
  const bool grows = is_expandable && settings_.expandable_segments;
  const uint64_t range = grows ? std::max(bytes, ExpandableBytes(list)) : bytes;
  uint64_t address = ReserveAddresses(range);
  BlockId previous = kNoBlock;
  for (const Piece& piece : pieces) {
    const State state = piece.is_awaited ? State::kAwaited
                        : piece.block    ? State::kAllocated
                                         : State::kFree;
    const BlockId id =
        NewBlock({address, piece.size, previous, kNoBlock, list, state, is_expandable, lookups_});
    if (previous != kNoBlock) blocks_[previous].next = id;
    previous = id;
    address += piece.size;
    if (piece.block) {
      if (*piece.block >= in_use_.size()) in_use_.resize(*piece.block + 1, kNoBlock);
      in_use_[*piece.block] = id;
      if (piece.is_awaited) awaited_[*piece.block] = id;
    }
    if (state == State::kFree) Insert(id);
    if (state == State::kAllocated) allocated_ += piece.size;
  }
  if (range > bytes) {
    const BlockId id = NewBlock(
        {address, range - bytes, previous, kNoBlock, list, State::kUnmapped, true, lookups_});
    if (previous != kNoBlock) blocks_[previous].next = id;
    lists_[list].unmapped.insert({address, id});
  }
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  peak_allocated_ = std::max(peak_allocated_, allocated_);
}

bool CachingAllocator::Allocate(Allocation allocation, uint64_t bytes, const Place& place) {
  const uint64_t size = settings_.BlockBytes(bytes);
  const uint32_t list = ListOf(place, AllocatorSettings::IsSmall(size));
  ++lookups_;
  BlockId id = TakeFree(list, size);
  if (id == kNoBlock) {
    CollectGarbage();
    id = TakeNew(list, size);
  }
  if (id == kNoBlock && ReleaseOversize(list, size)) id = TakeNew(list, size);
  if (id == kNoBlock) {
    ++retries_;
    ReleaseCached();
    id = TakeNew(list, size);
  }
  if (id == kNoBlock) {
    ++failures_;
    return false;
  }
  if (IsWorthSplitting(blocks_[id], size)) SplitAfter(id, size, State::kFree);
  blocks_[id].state = State::kAllocated;
  allocated_ += blocks_[id].size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  if (allocation >= in_use_.size()) in_use_.resize(allocation + 1, kNoBlock);
  in_use_[allocation] = id;
  return true;
}

void CachingAllocator::Free(Allocation allocation) {
  if (allocation >= in_use_.size() || in_use_[allocation] == kNoBlock) return;
  const BlockId id = std::exchange(in_use_[allocation], kNoBlock);
  if (blocks_[id].state != State::kAllocated) return;
  allocated_ -= blocks_[id].size;
  MakeFree(id);
}

void CachingAllocator::FreeWhenAwaited(Allocation allocation) {
  if (allocation >= in_use_.size() || in_use_[allocation] == kNoBlock) return;
  const BlockId id = in_use_[allocation];
  if (blocks_[id].state != State::kAllocated) return;
  allocated_ -= blocks_[id].size;
  blocks_[id].state = State::kAwaited;
  awaited_[allocation] = id;
}

void CachingAllocator::Complete(Allocation allocation) {
  const auto it = awaited_.find(allocation);
  if (it == awaited_.end()) return;
  const BlockId id = it->second;
  awaited_.erase(it);
  in_use_[allocation] = kNoBlock;
  MakeFree(id);
}

void CachingAllocator::EmptyCache() { ReleaseCached(); }

// The smallest free block that is large enough. Whether the block may be used for the request is
// asked of that one only.
CachingAllocator::BlockId CachingAllocator::TakeFree(uint32_t list_number, uint64_t size) {
  FreeList& free = lists_[list_number].free;
  std::optional<FreePiece> piece = free.FindAtLeast(size);
  if (piece && blocks_[piece->block].is_expandable) piece = FindAmongExpandable(free, *piece);
  if (!piece) return kNoBlock;
  if (size < settings_.max_split_bytes && piece->size >= settings_.max_split_bytes) return kNoBlock;
  if (size >= settings_.max_split_bytes &&
      piece->size >= size + settings_.max_non_split_rounding_bytes) {
    return kNoBlock;
  }
  free.Erase(*piece);
  return piece->block;
}

// `piece`: the smallest one that is large enough, of an expandable segment.
std::optional<FreePiece> CachingAllocator::FindAmongExpandable(const FreeList& free,
                                                               FreePiece piece) const {
  // A block that can grow counts with the size to which it can.
  const auto grown = [&](const FreePiece& one) {
    const BlockId next = blocks_[one.block].next;
    const bool can_grow = next != kNoBlock && blocks_[next].state == State::kUnmapped;
    return one.size + (can_grow ? blocks_[next].size : 0);
  };
  while (blocks_[piece.block].is_expandable) {
    const std::optional<FreePiece> next = free.FindAfter(piece);
    if (settings_.expandable_segments) {
      if (!next || grown(*next) >= grown(piece)) break;
    } else if (!next) {
      return std::nullopt;
    }
    piece = *next;
  }
  return piece;
}

CachingAllocator::BlockId CachingAllocator::TakeNew(uint32_t list, uint64_t size) {
  const uint64_t bytes = settings_.SegmentBytes(size);
  const uint64_t limit = Limit();
  if (limit != AllocatorSettings::kUnlimited && reserved_ + bytes > limit) return kNoBlock;
  if (settings_.expandable_segments) return TakeExpandable(list, size);
  if (!AskDriver(bytes)) return kNoBlock;
  AddReserved(bytes, bytes);
  return NewBlock({ReserveAddresses(bytes), bytes, kNoBlock, kNoBlock, list, State::kAllocated,
                   false, lookups_});
}

CachingAllocator::BlockId CachingAllocator::TakeExpandable(uint32_t list, uint64_t size) {
  BlockId id = FindExpandable(lists_[list], size);
  if (id == kNoBlock) id = ReserveExpandable(list);
  if (blocks_[id].size < size && blocks_[id].state == State::kUnmapped &&
      blocks_[id].next == kNoBlock) {
    return kNoBlock;  // larger than the addresses that are reserved
  }
  if (blocks_[id].state == State::kUnmapped && !Map(id, std::min(blocks_[id].size, size)))
    return kNoBlock;
  while (blocks_[id].size < size) {
    const BlockId next = blocks_[id].next;
    if (!Map(next, std::min(size - blocks_[id].size, blocks_[next].size))) return kNoBlock;
    id = next;  // which has absorbed the part before it
  }
  Remove(id);
  return id;
}

// The first run of free and unmapped neighbours that has enough addresses.
CachingAllocator::BlockId CachingAllocator::FindExpandable(const List& list, uint64_t size) const {
  const auto is_usable = [&](BlockId id) {
    return id != kNoBlock &&
           (blocks_[id].state == State::kFree || blocks_[id].state == State::kUnmapped);
  };
  for (const auto& [address, unmapped] : list.unmapped) {
    const BlockId before = blocks_[unmapped].previous;
    const BlockId first = is_usable(before) ? before : unmapped;
    uint64_t bytes = 0;
    for (BlockId id = first; bytes < size && is_usable(id); id = blocks_[id].next)
      bytes += blocks_[id].size;
    if (bytes >= size) return first;
  }
  return kNoBlock;
}

// The addresses of an expandable segment: more than the device has, so that it never has to move.
uint64_t CachingAllocator::ExpandableBytes(uint32_t list) const {
  if (device_bytes_ == 0) return uint64_t{1} << 40;
  return RoundUp(device_bytes_ / 8 * 9, PageBytes(lists_[list]));
}

CachingAllocator::BlockId CachingAllocator::ReserveExpandable(uint32_t list) {
  const uint64_t bytes = ExpandableBytes(list);
  const BlockId id = NewBlock(
      {ReserveAddresses(bytes), bytes, kNoBlock, kNoBlock, list, State::kUnmapped, true, lookups_});
  lists_[list].unmapped.insert({blocks_[id].address, id});
  return id;
}

// Maps whole pages at the beginning of an unmapped block, and merges them with free neighbours into
// `id`.
bool CachingAllocator::Map(BlockId id, uint64_t bytes) {
  List& list = lists_[blocks_[id].list];
  const uint64_t page = PageBytes(list);
  const uint64_t mapped = std::min(RoundUp(bytes, page), blocks_[id].size);
  if (!AskDriver(mapped)) return false;
  AddReserved(mapped, page);
  list.unmapped.erase({blocks_[id].address, id});
  if (mapped < blocks_[id].size) SplitAfter(id, mapped, State::kUnmapped);
  blocks_[id].state = State::kFree;
  MergeWithNeighbours(id);
  Insert(id);
  return true;
}

bool CachingAllocator::AskDriver(uint64_t bytes) {
  if (capacity_ == AllocatorSettings::kUnlimited || reserved_ + outside_ + bytes <= capacity_)
    return true;
  was_refused_ = true;
  return false;
}

void CachingAllocator::AddReserved(uint64_t bytes, uint64_t each) {
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  for (uint64_t done = 0; done < bytes; done += each, ++allocations_)
    calls_.push_back({each, false});
}

void CachingAllocator::AddReleased(uint64_t bytes, uint64_t each) {
  reserved_ -= bytes;
  for (uint64_t done = 0; done < bytes; done += each, ++releases_) calls_.push_back({each, true});
}

bool CachingAllocator::IsWorthSplitting(const Block& block, uint64_t size) const {
  const uint64_t rest = block.size - size;
  if (lists_[block.list].is_small || settings_.expandable_segments) return rest >= kSmallestRest;
  return size < settings_.max_split_bytes && rest > kSmallestLargeRest;
}

void CachingAllocator::SplitAfter(BlockId id, uint64_t size, State state_of_rest) {
  Block rest = blocks_[id];
  rest.address += size;
  rest.size -= size;
  rest.previous = id;
  rest.state = state_of_rest;
  const BlockId rest_id = NewBlock(rest);
  if (rest.next != kNoBlock) blocks_[rest.next].previous = rest_id;
  blocks_[id].next = rest_id;
  blocks_[id].size = size;
  if (state_of_rest == State::kFree) {
    Insert(rest_id);
  } else {
    lists_[rest.list].unmapped.insert({rest.address, rest_id});
  }
}

void CachingAllocator::Insert(BlockId id) {
  Block& block = blocks_[id];
  block.free_since = lookups_;
  lists_[block.list].free.Insert({block.size, block.address, id});
}

void CachingAllocator::Remove(BlockId id) {
  const Block& block = blocks_[id];
  lists_[block.list].free.Erase({block.size, block.address, id});
}

void CachingAllocator::MergeWithNeighbours(BlockId id) {
  const BlockId before = blocks_[id].previous, after = blocks_[id].next;
  if (before != kNoBlock && blocks_[before].state == State::kFree) Absorb(id, before);
  if (after != kNoBlock && blocks_[after].state == State::kFree) Absorb(id, after);
}

void CachingAllocator::Absorb(BlockId id, BlockId neighbour) {
  Remove(neighbour);
  Block& block = blocks_[id];
  const Block& other = blocks_[neighbour];
  block.size += other.size;
  if (block.previous == neighbour) {
    block.address = other.address;
    block.previous = other.previous;
    if (other.previous != kNoBlock) blocks_[other.previous].next = id;
  } else {
    block.next = other.next;
    if (other.next != kNoBlock) blocks_[other.next].previous = id;
  }
  Drop(neighbour);
}

void CachingAllocator::MakeFree(BlockId id) {
  blocks_[id].state = State::kFree;
  MergeWithNeighbours(id);
  Insert(id);
}

// Whether a free block can be returned to the driver: only whole segments can. Pages are unmapped.
bool CachingAllocator::IsWholeSegment(BlockId id) const {
  const Block& block = blocks_[id];
  return !block.is_expandable && block.previous == kNoBlock && block.next == kNoBlock;
}

// With max_split_size, segments too large to be split are released first: one that is large enough,
// or as many of the largest as it takes. A segment from before these settings may have been split,
// and so may a new one if segments for small requests exceed max_split_size.
bool CachingAllocator::ReleaseOversize(uint32_t list_number, uint64_t size) {
  if (settings_.max_split_bytes == AllocatorSettings::kUnlimited) return false;
  const uint64_t wanted = std::max(size, settings_.max_split_bytes);
  const FreeList::Set& free = lists_[list_number].free.Ordered();
  const auto is_whole = [&](const FreePiece& piece) { return IsWholeSegment(piece.block); };
  const auto large = free.lower_bound(FreePiece{wanted, 0, 0});
  std::vector<BlockId> released;
  uint64_t bytes = 0;
  if (const auto it = std::find_if(large, free.end(), is_whole); it != free.end()) {
    released = {it->block};
    bytes = it->size;
  } else {
    for (auto last = std::make_reverse_iterator(large);
         last != free.rend() && bytes < wanted && last->size >= settings_.max_split_bytes; ++last) {
      if (!is_whole(*last)) continue;
      bytes += last->size;
      released.push_back(last->block);
    }
  }
  for (BlockId id : released) ReleaseSegment(id);
  return bytes >= wanted;
}

void CachingAllocator::ReleaseCached() {
  for (const auto& [allocation, id] : awaited_) {
    in_use_[allocation] = kNoBlock;
    MakeFree(id);
  }
  awaited_.clear();
  for (List& list : lists_) {
    if (list.pool != 0) continue;  // the pool of a graph that exists
    std::vector<BlockId> whole, expandable;
    for (const FreePiece& free : list.free.Ordered()) {
      if (blocks_[free.block].is_expandable) {
        expandable.push_back(free.block);
      } else if (IsWholeSegment(free.block)) {
        whole.push_back(free.block);
      }
    }
    for (BlockId id : whole) ReleaseSegment(id);
    for (BlockId id : expandable) Unmap(id);
  }
}

// REQUIRES: IsWholeSegment(id).
void CachingAllocator::ReleaseSegment(BlockId id) {
  Remove(id);
  AddReleased(blocks_[id].size, blocks_[id].size);
  Drop(id);
}

// Returns the pages that the free block covers completely.
void CachingAllocator::Unmap(BlockId id) {
  List& list = lists_[blocks_[id].list];
  const uint64_t page = PageBytes(list);
  // Pages are counted from the beginning of the segment.
  BlockId first = id;
  while (blocks_[first].previous != kNoBlock) first = blocks_[first].previous;
  const uint64_t start = blocks_[first].address;
  const uint64_t begin = start + RoundUp(blocks_[id].address - start, page);
  const uint64_t end = start + (blocks_[id].address + blocks_[id].size - start) / page * page;
  if (begin >= end) return;
  Remove(id);
  if (begin > blocks_[id].address) {
    SplitAfter(id, begin - blocks_[id].address, State::kUnmapped);
    const BlockId pages = blocks_[id].next;
    lists_[blocks_[id].list].unmapped.erase({blocks_[pages].address, pages});
    Insert(id);
    id = pages;
  }
  if (blocks_[id].size > end - begin) SplitAfter(id, end - begin, State::kFree);
  AddReleased(end - begin, page);
  blocks_[id].state = State::kUnmapped;
  for (BlockId neighbour : {blocks_[id].previous, blocks_[id].next}) {
    if (neighbour == kNoBlock || blocks_[neighbour].state != State::kUnmapped) continue;
    list.unmapped.erase({blocks_[neighbour].address, neighbour});
    Absorb(id, neighbour);
  }
  list.unmapped.insert({blocks_[id].address, id});
}

// Releases the segments without a block that have been unused for longer than the average, until
// what exceeds the threshold is gone.
void CachingAllocator::CollectGarbage() {
  const uint64_t limit = Limit();
  if (settings_.gc_threshold <= 0 || limit == AllocatorSettings::kUnlimited) return;
  const auto threshold = static_cast<uint64_t>(settings_.gc_threshold * static_cast<double>(limit));
  if (reserved_ <= threshold) return;
  const uint64_t wanted = reserved_ - threshold;
  uint64_t released = 0;
  for (bool progress = true; progress && released < wanted;) {
    std::vector<BlockId> whole;
    uint64_t age = 0;
    for (List& list : lists_) {
      if (list.is_small || list.pool != 0) continue;
      for (const FreePiece& free : list.free.Ordered()) {
        if (!IsWholeSegment(free.block)) continue;
        whole.push_back(free.block);
        age += lookups_ - blocks_[free.block].free_since;
      }
    }
    progress = false;
    for (BlockId id : whole) {
      if ((lookups_ - blocks_[id].free_since) * whole.size() < age) continue;
      released += blocks_[id].size;
      ReleaseSegment(id);
      progress = true;
    }
  }
}

}  // namespace gmt::analysis
