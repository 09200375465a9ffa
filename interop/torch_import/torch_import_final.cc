// If a snapshot's history and its final state contradict each other, the final state wins.

#include <algorithm>
#include <iterator>

#include "format/definitions_builder.h"
#include "interop/torch_import/torch_import_events.h"
#include "interop/torch_import/torch_import_fields.h"

namespace gmt::interop {

using format::Event;

void SnapshotEvents::PutLost(Event event) {
  event.t_ns = last_t_ns_;
  event.present |= format::kHasTime;
  event.api = lost_;
  Put(event);
}

void SnapshotEvents::EndLost(Kind kind, uint32_t heap, Memory memory, uint32_t device,
                             uint64_t address, uint64_t size) {
  Event event = Make(kind, heap, memory, device);
  SetRange(address, size, &event);
  PutLost(event);
}

// Ends what no longer exists from the inside outwards, then adds what exists from the outside
// inwards.
void SnapshotEvents::AddFinalState(uint32_t device, const std::vector<SnapshotSegment>& segments) {
  std::map<uint64_t, FinalBlock> blocks;
  std::map<uint64_t, const SnapshotSegment*> ranges;
  for (const SnapshotSegment& segment : segments) {
    if (segment.device != device) continue;
    ranges[segment.address] = &segment;
    for (const SnapshotBlock& block : segment.blocks) blocks[block.address] = {&block, &segment};
  }
  Followed& held = followed_[device];
  for (const auto& [address, pending] : held.blocks) {
    const auto known = blocks.find(address);
    if (known != blocks.end() && (!pending || known->second.block->pending)) continue;
    if (!pending) EndLost(FREE, pytorch_, BLOCK, device, address, 0);
    EndLost(FREE_DONE, pytorch_, BLOCK, device, address, 0);
  }
  for (const auto& [address, size] : held.segments) {
    const auto known = ranges.find(address);
    if (known == ranges.end() || known->second->expandable)
      EndLost(FREE, driver_, DEVICE, device, address, size);
  }
  EndLostMappings(device, ranges);
  for (const auto& [address, segment] : ranges) {
    if (segment->expandable) {
      AddLostMappings(*segment);
    } else if (!held.segments.contains(address)) {
      PutLost(Segment(*segment));
    }
  }
  for (const auto& [address, last] : blocks) {
    const auto old = held.blocks.find(address);
    const bool is_new = old == held.blocks.end() || (old->second && !last.block->pending);
    if (is_new) PutLost(Block(device, *last.block, last.segment->stream));
    if (last.block->pending && (is_new || !old->second))
      EndLost(FREE, pytorch_, BLOCK, device, address, last.block->size);
  }
}

void SnapshotEvents::EndLostMappings(uint32_t device,
                                     const std::map<uint64_t, const SnapshotSegment*>& ranges) {
  auto& mapped = mapped_[device];
  for (auto it = mapped.begin(); it != mapped.end();) {
    const auto [address, piece] = *it;
    const auto after = ranges.upper_bound(address);
    const SnapshotSegment* range = after == ranges.begin() ? nullptr : std::prev(after)->second;
    const bool is_there = range != nullptr && range->expandable &&
                          address - range->address < range->size &&
                          piece.size <= range->size - (address - range->address);
    if (is_there) {
      ++it;
      continue;
    }
    EndLost(UNMAP, driver_, VMM, device, address, piece.size);
    while (it != mapped.end() && it->first - address < std::max<uint64_t>(piece.size, 1)) {
      EndLost(RELEASE, driver_, VMM, device, it->second.handle, it->second.size);
      it = mapped.erase(it);
    }
  }
}

void SnapshotEvents::AddLostMappings(const SnapshotSegment& segment) {
  Event like = Make(CREATE, driver_, VMM, segment.device);
  SetStream(segment.stream, &like);
  SetPool(segment.pool, &like);
  like.stack = stacks_.StackOf(segment.frames);
  const auto add = [&](uint64_t from, uint64_t to) {
    if (from >= to) return;
    const auto [create, map] = MapPiece(segment.device, from, to - from, like);
    PutLost(create);
    PutLost(map);
  };
  uint64_t reached = segment.address;
  const uint64_t end = segment.address + segment.size;
  auto& mapped = mapped_[segment.device];
  std::vector<std::pair<uint64_t, uint64_t>> there;
  for (auto it = mapped.lower_bound(segment.address); it != mapped.end() && it->first < end; ++it)
    there.emplace_back(it->first, it->first + it->second.size);
  for (const auto& [from, to] : there) {
    add(reached, from);
    reached = to;
  }
  add(reached, end);
}

}  // namespace gmt::interop
