// format/testing/held_events.h
//
// HeldEvents: follows what allocations and frees of GPU 0 and of host memory leave, for the
// checkpoints of generated recordings.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_TESTING_HELD_EVENTS_H_
#define GMT_FORMAT_TESTING_HELD_EVENTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/event.h"
#include "format/live_columns.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

class HeldEvents {
 public:
  // `heaps`: the name of each heap, by its string id.
  explicit HeldEvents(std::map<uint32_t, std::string> heaps) {
    for (auto& [id, name] : heaps) {
      sums_[id].set_heap(name);
      if (name != "host") sums_[id].set_device(0);
      sums_[id].set_allocated_at_most(0);
    }
  }

  void Apply(const Event& event) {
    ++events_;
    t_ns_ = event.t_ns;
    if (event.kind != ALLOC && event.kind != FREE) return;
    HeapCounts& sums = sums_[event.heap];
    const std::pair<uint32_t, uint64_t> place{event.heap, event.address};
    if (event.kind == ALLOC) {
      held_[place] = event;
      if (event.memory == BLOCK) NoteSegment(event.address);
      sums.set_allocations(sums.allocations() + 1);
      sums.set_live_bytes(sums.live_bytes() + event.size);
      NoteAllocated(event.heap);
      if (sums.live_bytes() <= sums.peak_bytes()) return;
      sums.set_peak_bytes(sums.live_bytes());
      sums.set_peak_t_ns(event.t_ns);
    } else if (const auto found = held_.find(place); found != held_.end()) {
      sums.set_frees(sums.frees() + 1);
      sums.set_live_bytes(sums.live_bytes() - found->second.size);
      if (event.memory != BLOCK && segments_.erase(event.address) > 0)
        segment_bytes_[event.heap] -= found->second.size;
      held_.erase(found);
    }
  }

  uint64_t count() const { return held_.size(); }

  // Also begins the next interval.
  Checkpoint MakeCheckpoint() {
    std::vector<Event> rows;
    for (const auto& [place, event] : held_) rows.push_back(event);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Event& a, const Event& b) { return a.t_ns < b.t_ns; });
    Checkpoint checkpoint;
    uint32_t last = 0;
    for (uint32_t row = 0; row < rows.size(); ++row) {
      if (rows[row].memory != BLOCK && segments_.contains(rows[row].address))
        checkpoint.add_segments(row - std::exchange(last, row));
    }
    checkpoint.mutable_held()->set_t_ns(t_ns_);
    checkpoint.mutable_held()->set_exact(true);
    *checkpoint.mutable_held()->mutable_live() = EncodeLive(rows);
    checkpoint.mutable_so_far()->set_t_ns(t_ns_);
    checkpoint.mutable_so_far()->set_events(events_);
    for (auto& [id, sums] : sums_) {
      *checkpoint.mutable_so_far()->add_heaps() = sums;
      sums.set_allocated_at_most(0);
      NoteAllocated(id);
    }
    return checkpoint;
  }

 private:
  void NoteSegment(uint64_t address) {
    for (const auto& [id, sums] : sums_) {
      auto around = held_.upper_bound({id, address});
      if (around == held_.begin()) continue;
      const Event& event = (--around)->second;
      if (event.memory == BLOCK || address - event.address >= event.size) continue;
      if (!segments_.insert(event.address).second) continue;
      uint64_t& bytes = segment_bytes_[id] += event.size;
      HeapCounts& counts = sums_[id];
      if (bytes <= counts.peak_segment_bytes()) continue;
      counts.set_peak_segment_bytes(bytes);
      counts.set_peak_segment_t_ns(event.t_ns);
    }
  }
  void NoteAllocated(uint32_t heap) {
    HeapCounts& sums = sums_[heap];
    sums.set_allocated_at_most(
        std::max(sums.allocated_at_most(), sums.live_bytes() - segment_bytes_[heap]));
  }

  std::map<std::pair<uint32_t, uint64_t>, Event> held_;
  std::set<uint64_t> segments_;  // the addresses of memory that has held blocks
  std::map<uint32_t, uint64_t> segment_bytes_;  // by heap
  std::map<uint32_t, HeapCounts> sums_;
  uint64_t events_ = 0;
  int64_t t_ns_ = 0;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_TESTING_HELD_EVENTS_H_
