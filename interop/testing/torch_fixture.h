// interop/testing/torch_fixture.h
//
// For tests: what is written for one device, and recordings in disorder.

#ifndef GMT_INTEROP_TESTING_TORCH_FIXTURE_H_
#define GMT_INTEROP_TESTING_TORCH_FIXTURE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "interop/testing/torch_check.h"
#include "interop/torch/torch_selection.h"

namespace gmt::interop {

struct SelectedTrace {
  std::vector<TorchEvent> events;
  std::vector<TorchSegment> segments;
  TorchModelCounts counts;
  TorchPlan plan;

  std::vector<std::string> Actions() const {
    static constexpr const char* kNames[] = {
        "alloc",        "free_requested", "free_completed", "segment_alloc",
        "segment_free", "segment_map",    "segment_unmap",  "oom",
        "snapshot",     "other"};
    std::vector<std::string> names;
    for (const TorchEvent& event : events) names.emplace_back(kNames[event.action]);
    return names;
  }
  // Returns the problems that the viewer would have with it.
  TorchCheck Check() const {
    TorchCheck check(segments);
    check.UndoAll(events);
    return check;
  }
};

inline SelectedTrace SelectTrace(const analysis::Trace& trace, const TorchSelection& selection = {},
                                 int32_t device = 0) {
  class Collector : public TorchSelectedSink {
   public:
    using TorchSelectedSink::TorchSelectedSink;
    std::vector<TorchEvent> events;

   private:
    void OnSelected(const TorchEvent& event) override { events.push_back(event); }
  };
  const TorchFeed feed(trace);
  const std::vector<bool> ignored(trace.failed.size());
  SelectedTrace selected;
  selected.plan = PlanTorchTrace(trace, feed, device, selection, ignored);
  Collector collector(selection.window, selected.plan.skipped, selected.plan.left);
  TorchModel model(trace, device, TorchModel::Mode::kEmit, selected.plan.facts, collector);
  RunTorchModel(feed, selection.window, model);
  selected.events = std::move(collector.events);
  selected.segments = model.Segments();
  selected.counts = model.counts();
  return selected;
}

// An allocator that loses a part of its events: segments and blocks of every kind at few addresses,
// frees that come twice, late or never.
class SloppyScript {
 public:
  explicit SloppyScript(uint64_t seed) : random_(seed) {}

  analysis::EventScript Write(int events) {
    analysis::EventScript script;
    AddTo(script, events);
    return script;
  }
  void AddTo(analysis::EventScript& script, int events) {
    for (int i = 0; i < events; ++i) {
      if (format::Event* event = Add(script)) {
        event->stream = 16 * Below(3);
        if (Below(4) > 0) event->present |= format::kHasStream;
      }
    }
  }

 private:
  static constexpr uint64_t kPage = 2 << 20;
  static constexpr uint64_t kPlain = uint64_t{1} << 40, kVirtual = uint64_t{1} << 41;

  format::Event* Add(analysis::EventScript& script) {
    const uint64_t page = Below(12), handle = 1 + Below(12);
    switch (Below(12)) {
      case 0:
        return &script.Alloc(kPlain + page * kPage, (1 + Below(3)) * kPage);
      case 1:
        return &script.Free(kPlain + page * kPage, Below(2) * kPage);
      case 2:
        return &script.Create(handle, kPage);
      case 3:
        return &script.Map(kVirtual + page * kPage, kPage, handle);
      case 4:
        return &script.Unmap(kVirtual + page * kPage, (1 + Below(3)) * kPage);
      case 5:
        return &script.Release(handle);
      case 6:
      case 7:
      case 8:
        return &script.Block(Place(), (1 + Below(12)) * 512 << Below(12));
      case 9:
      case 10:
        return &script.FreeBlock(Place());
      default:
        return Rare(script);
    }
  }

  format::Event* Rare(analysis::EventScript& script) {
    switch (Below(8)) {
      case 0:
        return &script.Reset(static_cast<uint32_t>(Below(2)));
      case 1:
        return &script.Failed(Below(1000) * kPage);
      case 2:
        script.SnapshotTaken("s" + std::to_string(Below(1000)));
        return nullptr;
      case 3:
        script.Gap(Below(9));
        return nullptr;
      case 4:
        return &script.Reserve(kVirtual, 12 * kPage);
      case 5:
        return &script.FreeDone(kPlain + Below(12) * kPage, static_cast<uint32_t>(Below(2)));
      default:
        return &script.Pinned(0x1000 * (1 + Below(4)), 512);
    }
  }

  uint64_t Place() {
    return (Below(2) == 0 ? kPlain : kVirtual) + Below(12) * kPage + Below(4) * (kPage / 4);
  }
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  std::mt19937_64 random_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TESTING_TORCH_FIXTURE_H_
