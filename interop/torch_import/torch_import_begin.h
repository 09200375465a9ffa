// interop/torch_import/torch_import_begin.h
//
// The state of a device before the first event of its trace. PyTorch's snapshot contains the state
// at its end, and as much of the history as the recorder kept. Undoing the history on the final
// state, from end to beginning, gives the state before it.
//
//   final     A: 512 at 0x1000
//   history   alloc B 0x2000   free B   alloc A 0x1000   free C 0x3000
//   undone    C held, A not yet, B not yet            ->  before: C at 0x3000
//
// A block that was freed is known only from its free, which has neither its allocation's stack nor
// its rounded size. A history with holes (recording was switched off and on) contradicts the final
// state. Such contradictions are counted, and the final state wins.
//
// Thread safety: pure function.

#ifndef GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_BEGIN_H_
#define GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_BEGIN_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "interop/torch_import/torch_import_view.h"

namespace gmt::interop {

// An address range of an expandable segment that is backed by mapped memory.
struct MappedRange {
  uint64_t address = 0, size = 0;
  std::optional<uint64_t> stream;
  uint64_t pool = 0;
  bool small = false;
  PickleValue frames{};
};

struct DeviceBegin {
  // Sorted by address.
  std::vector<SnapshotBlock> blocks;
  std::vector<std::optional<uint64_t>> block_streams;  // of each block
  std::vector<SnapshotSegment> segments;               // not expandable; without blocks
  std::vector<MappedRange> mapped;

  // Where memory that is mapped before the trace or by event `index` must be cut, because a later
  // event unmaps part of it. For kBefore and for segment_map events: ascending addresses strictly
  // inside the range.
  static constexpr uint32_t kBefore = UINT32_MAX;
  std::map<uint32_t, std::vector<uint64_t>> cuts;
  const std::vector<uint64_t>& CutsOf(uint32_t index) const;
  // The pools of segment_alloc and segment_map events whose segment exists at the end.
  absl::flat_hash_map<uint32_t, uint64_t> pools;
  // The sizes of alloc events whose block exists at the end.
  absl::flat_hash_map<uint32_t, uint64_t> sizes;
  // All ranges that were ever mapped, with adjoining ones joined: address -> end.
  std::map<uint64_t, uint64_t> reserved;

  uint64_t contradictions = 0;
  std::optional<int64_t> first_us;  // earliest time of any event
};

// Rounds a requested size as PyTorch does (kMinBlockSize of the allocator).
uint64_t RoundedBlockSize(uint64_t requested);

// `segments` are the final segments of all devices.
absl::StatusOr<DeviceBegin> StateBefore(const SnapshotView& view, uint32_t device,
                                        const std::vector<SnapshotSegment>& segments);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_BEGIN_H_
