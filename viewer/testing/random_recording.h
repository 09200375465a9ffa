// viewer/testing/random_recording.h
//
// For tests: a recording with everything that a trace can show: segments with blocks, blocks
// outside of segments, lost frees, frees of memory from before, frees that wait for other streams,
// several devices, streams and threads, stacks of any depth or none, also of forward passes, and
// equal times.

#ifndef GMT_VIEWER_TESTING_RANDOM_RECORDING_H_
#define GMT_VIEWER_TESTING_RANDOM_RECORDING_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/event_script.h"
#include "viewer/questions/questions.h"

namespace gmt::viewer {

class RandomRecording {
 public:
  RandomRecording(uint32_t seed, int events) : random_(seed) {
    for (int device = 0; device < kDevices; ++device) {
      for (int i = 0; i < kSegments; ++i) {
        auto& event = script_.Alloc(SegmentAt(device, i), kSegment, {"segment", "main"});
        event.device = static_cast<uint32_t>(device);
      }
    }
    for (int i = 0; i < events; ++i) AddRandomEvent();
    trace_ = script_.Build();
  }

  const analysis::Trace& trace() const { return trace_; }
  const format::Definitions& definitions() { return script_.definitions(); }
  const format::EventBatch& batch() const { return script_.batch(); }

  // Returns a lane for each heap on each device.
  std::vector<Questions::Lane> lanes() const {
    std::map<std::pair<int32_t, uint32_t>, bool> seen;
    for (analysis::RowId row = 0; row < trace_.rows.count(); ++row) {
      seen[{trace_.rows.device[row], trace_.rows.heap[row]}] = true;
    }
    std::vector<Questions::Lane> lanes;
    for (const auto& [lane, unused] : seen) lanes.push_back({lane.first, lane.second});
    return lanes;
  }

  uint32_t Any(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

 private:
  static constexpr int kDevices = 2, kSegments = 3;
  static constexpr uint64_t kSegment = 4 << 20, kSlots = 16;

  static uint64_t SegmentAt(int device, int i) {
    return 0x7f0000000000 + static_cast<uint64_t>(device * 16 + i) * (kSegment * 2);
  }

  analysis::EventScript::Functions AnyStack() {
    const analysis::EventScript::Functions functions = {"forward", "backward", "step", "linear",
                                                        "attention"};
    analysis::EventScript::Functions stack;
    const uint32_t depth = Any(6);
    for (uint32_t i = 0; i < depth; ++i) stack.push_back(functions[Any(5)]);
    return stack;
  }

  void Decorate(format::Event& event, uint32_t device) {
    event.device = device;
    if (Any(3) > 0) {
      event.present |= format::kHasStream;
      event.stream = Any(3);
    }
    if (Any(3) > 0) {
      event.present |= format::kHasThread;
      event.thread = 10 + Any(3);
    }
    if (Any(4) == 0) {
      event.present |= format::kHasRequested;
      event.requested = event.size - Any(200);
    }
    if (Any(3) == 0)
      event.t_ns -= analysis::EventScript::kStep_ns;  // equal to the previous event's time
  }

  void AddRandomEvent() {
    const uint32_t device = Any(kDevices);
    const uint64_t address = SegmentAt(static_cast<int>(device), static_cast<int>(Any(kSegments))) +
                             Any(kSlots) * (kSegment / kSlots);
    switch (Any(16)) {
      case 0:
        return Decorate(
            script_.Pinned(0x1000 + Any(20) * 0x100000, 4096 * (1 + Any(9)), AnyStack()), 0);
      case 1:
        return Decorate(script_.FreePinned(0x1000 + Any(20) * 0x100000), 0);
      case 2: {  // outside of all segments
        const uint64_t outside = 0x100000000 + Any(8) * 0x1000000;
        return Decorate(script_.Block(outside, 512 * (1 + Any(9)), AnyStack()), device);
      }
      case 3:
        return Decorate(script_.FreeBlock(0x100000000 + Any(8) * 0x1000000), device);
      case 4: {  // memory from before the recording, occasionally
        auto& event = script_.FreeBlock(0x200000000 + Any(40) * 0x1000);
        event.present |= format::kHasSize;
        event.size = 700 + Any(300);
        return Decorate(event, device);
      }
      case 5: {
        script_.RecordEvent(Any(5), 0x77);
        return Decorate(script_.FreeBlock(address), device);
      }
      case 6:
        script_.EventDone(Any(5));
        return;
      case 7: {
        auto& event = script_.Alloc(0x900000000 + Any(5) * 0x10000000, 1 << 20, AnyStack());
        return Decorate(event, device);
      }
      case 8:
        return Decorate(script_.Free(0x900000000 + Any(5) * 0x10000000), device);
      default:
        break;
    }
    if (Any(2) == 0) return Decorate(script_.FreeBlock(address), device);
    // The block may overlap the next slot, or one that is still held.
    auto& event = script_.Block(address, 512 * (1 + Any(600)), AnyStack());
    if (Any(4) == 0) event.forward_stack = script_.Stack(AnyStack());
    Decorate(event, device);
  }

  std::mt19937 random_;
  analysis::EventScript script_;
  analysis::Trace trace_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_TESTING_RANDOM_RECORDING_H_
