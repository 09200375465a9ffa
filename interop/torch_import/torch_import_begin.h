// interop/torch_import/torch_import_begin.h
//
// What a device held before the first event of its trace. PyTorch's snapshot has the state at its
// end, and of the history as much as the recorder kept; undoing the history on the final state, from
// its end to its beginning, gives the state before it.
//
//   final     A: 512 at 0x1000
//   history   alloc B 0x2000   free B   alloc A 0x1000   free C 0x3000
//   undone    C held, A not yet, B not yet            ->  before: C at 0x3000
//
// A block that was freed is known from its free alone, which has neither its allocation's stack nor
// its rounded size. A history with holes (recording was switched off and on) contradicts the final
// state; such places are counted, and the final state is believed.
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

// A range of addresses that is backed by mapped memory, of an expandable segment.
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
  std::vector<std::optional<uint64_t>> block_streams;  // of each
  std::vector<SnapshotSegment> segments;               // not expandable; without their blocks
  std::vector<MappedRange> mapped;

  // Where memory that is mapped before or by event `index` has to be cut because a later event unmaps
  // a part of it: for kBefore, and for segment_map events, ascending addresses strictly inside.
  static constexpr uint32_t kBefore = UINT32_MAX;
  std::map<uint32_t, std::vector<uint64_t>> cuts;
  const std::vector<uint64_t>& CutsOf(uint32_t index) const;
  // Of segment_alloc and segment_map events whose segment is there at the end: its pool.
  absl::flat_hash_map<uint32_t, uint64_t> pools;
  // Of alloc events whose block is there at the end: its size.
  absl::flat_hash_map<uint32_t, uint64_t> sizes;
  // All ranges that were ever mapped, joined where they adjoin: address -> end.
  std::map<uint64_t, uint64_t> reserved;

  uint64_t contradictions = 0;
  std::optional<int64_t> first_us;  // the earliest time of an event
};

// PyTorch's own rounding (kMinBlockSize of the allocator) of what was asked for.
uint64_t RoundedBlockSize(uint64_t requested);

// `segments`: the final ones of all devices.
absl::StatusOr<DeviceBegin> StateBefore(const SnapshotView& view, uint32_t device,
                                        const std::vector<SnapshotSegment>& segments);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_BEGIN_H_
