// format/testing/random_events.h
//
// RandomEvents: generates extreme events for round-trip tests: every kind, every field, values at
// the limits of their types, reused addresses.

#ifndef GMT_FORMAT_TESTING_RANDOM_EVENTS_H_
#define GMT_FORMAT_TESTING_RANDOM_EVENTS_H_

#include <iterator>
#include <random>
#include <string>

#include "format/event.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

class RandomEvents {
 public:
  explicit RandomEvents(uint64_t seed) : random_(seed) {}

  // Appends an event with its details. Ids are at most `max_id`.
  void AddTo(EventBatch* batch, uint32_t max_id) {
    Event event;
    event.kind = static_cast<Kind>(1 + Below(ROLE));
    event.present = Below(1 << 22);
    event.t_ns = OneIn(20) ? static_cast<int64_t>(Number())
                           : now_ += static_cast<int64_t>(Below(5000)) - 100;
    event.thread = Small();
    switch (FamilyOf(event.kind)) {
      case Family::kAcquisition:
        FillMemory(&event, max_id);
        event.requested = Number();
        event.forward_stack = Id(max_id);
        event.handle = Number();
        event.offset = Number();
        event.flags = Small();
        event.name = Id(max_id);
        event.scope = Id(max_id);
        event.dtype = Id(max_id);
        event.shape = Id(max_id);
        event.roles = Small();
        break;
      case Family::kReturn:
        FillMemory(&event, max_id);
        break;
      case Family::kActivity:
        FillActivity(&event, max_id);
        break;
      case Family::kNote:
        FillNote(&event, max_id);
        break;
      case Family::kRole:
        FillPlace(&event);
        event.roles = Small();
        event.forward_stack = Id(max_id);
        event.name = Id(max_id);
        break;
      case Family::kSample:
        event.detail = static_cast<uint32_t>(batch->samples.size());
        batch->samples.emplace_back().set_used_bytes(Number());
        break;
      case Family::kSnapshot:
        event.detail = static_cast<uint32_t>(batch->snapshots.size());
        batch->snapshots.emplace_back().set_name(std::to_string(Small()));
        break;
      case Family::kGap:
        event.detail = static_cast<uint32_t>(batch->gaps.size());
        batch->gaps.emplace_back().set_events(Number());
        break;
      case Family::kOther:
        event.detail = static_cast<uint32_t>(batch->others.size());
        batch->others.push_back(R"({"kind":"x)" + std::to_string(Small()) + R"("})");
        break;
    }
    batch->events.push_back(event);
  }

 private:
  // Uses few places, so that frees and roles match allocations and addresses recur.
  void FillPlace(Event* event) {
    event->heap = Id(2);
    event->memory = static_cast<Memory>(Below(REGION + 1));
    event->device = static_cast<uint32_t>(Below(2));
    event->address = OneIn(20) ? Number() : 0x7F0000000000 + 512 * Below(30);
    event->size = OneIn(2) ? 512 : Number();
  }

  void FillMemory(Event* event, uint32_t max_id) {
    FillPlace(event);
    event->context = Small();
    event->stack = Id(max_id);
    event->stream = OneIn(2) ? 0 : Number();
    event->api = Id(max_id);
    event->duration_ns = Number();
    event->result = Small();
    event->pool = Small();
    event->total_allocated = Number();
    event->total_reserved = Number();
  }

  void FillActivity(Event* event, uint32_t max_id) {
    event->heap = Id(max_id);
    event->device = Small();
    event->context = Small();
    event->stream = Number();
    event->object = Number();
    event->action = Id(max_id);
    event->api = Id(max_id);
    event->duration_ns = Number();
    event->result = Small();
    event->stack = Id(max_id);
    event->priority = static_cast<int32_t>(Number());
    event->flags = Small();
    event->value = Number();
    event->name = Id(max_id);
    event->memory = static_cast<Memory>(Below(REGION + 1));
  }

  void FillNote(Event* event, uint32_t max_id) {
    event->name = Id(max_id);
    event->index = Number();
    event->domain = Id(max_id);
    event->range = Number();
    event->color = Small();
    event->stack = Id(max_id);
    event->text = Id(max_id);
    event->device = Small();
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t in) { return Below(in) == 0; }
  uint32_t Id(uint32_t max) { return static_cast<uint32_t>(Below(max + 1)); }
  uint32_t Small() { return static_cast<uint32_t>(OneIn(10) ? Number() : Below(4)); }
  uint64_t Number() {
    static constexpr uint64_t kEdges[] = {
        0, 1, 127, 128, ~0ull, 1ull << 63, (1ull << 63) - 1, 0xFFFFFFFF};
    return OneIn(2) ? kEdges[Below(std::size(kEdges))] : random_();
  }

  std::mt19937_64 random_;
  int64_t now_ = 0;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_TESTING_RANDOM_EVENTS_H_
