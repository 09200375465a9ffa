// viewer/questions/event_list.h
//
// EventList: everything that happened to the memory of one device, in order: births and deaths in
// every heap, and between them what is no step (mappings, waits, failures, marks, ...). Marks and
// snapshots belong to every device.
//
//   kinds:  births and deaths | side events | actions of the allocator     merged by event
//   counts: [chunk 0][chunk 1][chunk 2]...    how many of each kind are before each chunk
//
// A page of any choice of kinds is found by the counts and a walk over the chunks that it covers,
// so that nothing is stored per event.
//
// Ownership: the examination must outlive it.
// Thread safety: const methods from any thread. Cost: the constructor walks over all events once;
// a page costs a few chunks, more if only rare kinds are chosen.

#ifndef GMT_VIEWER_QUESTIONS_EVENT_LIST_H_
#define GMT_VIEWER_QUESTIONS_EVENT_LIST_H_

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/examination/examination.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

class EventList {
 public:
  using Counts = std::array<uint64_t, kEventKinds>;

  struct Entry {
    uint32_t event = 0;
    EventKind kind = EventKind::kAlloc;
    // Births and deaths: an index of Trace::rows. Others: an index of the trace's mappings,
    // completions, failed, actions, marks or snapshots; for kAction, of actions() below.
    uint32_t index = 0;
    int64_t ns = 0;

    bool operator==(const Entry&) const = default;
  };

  // `steps_per_chunk`: for tests.
  EventList(const analysis::Examination& examination, int32_t device,
            uint32_t steps_per_chunk = 4096);

  // The device's actions, without failures.
  const std::vector<analysis::AllocatorAction>& actions() const { return actions_; }
  const Counts& counts() const { return before_.back(); }
  // Returns the number of entries of these kinds.
  uint64_t Total(uint32_t kinds) const { return Sum(before_.back(), kinds); }
  // Returns the entries [offset, offset + limit) of these kinds.
  std::vector<Entry> Page(uint32_t kinds, uint64_t offset, uint32_t limit) const;
  // Returns where the first entry of `event` is among those of these kinds; if it has none, where
  // the last entry before it is, or 0.
  uint64_t Position(uint32_t kinds, uint32_t event) const;

 private:
  static uint64_t Sum(const Counts& counts, uint32_t kinds);
  // Calls visit(entry) for each entry of a chunk, in order, until it returns false.
  template <typename Visit>
  void Walk(size_t chunk, Visit visit) const;
  bool StepEntry(analysis::Step step, Entry* entry) const;
  bool SideEntry(const analysis::SideEvent& side, Entry* entry) const;

  const analysis::Trace& trace_;
  const int32_t device_;
  const uint32_t steps_per_chunk_;
  std::vector<analysis::AllocatorAction> actions_;
  std::vector<Counts> before_;  // by chunk; the last one has all
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_EVENT_LIST_H_
