// analysis/testing/long_recording.h
//
// For benchmarks: the trace of a long training run, built in parts so that its events are never all
// in memory at once. It has blocks in segments (half of them short-lived), 500 stacks, 5,000 held
// blocks, a mark per step and an NVML reading every ten thousand events.

#ifndef GMT_ANALYSIS_TESTING_LONG_RECORDING_H_
#define GMT_ANALYSIS_TESTING_LONG_RECORDING_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {

class LongRecording {
 public:
  // `seed` determines the sizes and stacks of blocks.
  LongRecording(int64_t events, uint32_t seed) : random_(seed) {
    for (int i = 0; i < kStacks; ++i) {
      stacks_.push_back(script_.Stack({"f" + std::to_string(i), "main"}));
    }
    segment_ = script_.Alloc(kBase, uint64_t{1} << 36, {"segment"});
    block_ = script_.Block(kBase, 512);
    mark_ = script_.Mark("step", 1);
    sample_ = script_.Sample(uint64_t{1} << 36, uint64_t{1} << 37);
    sample_event_ = script_.batch().events.back();
    TraceBuilder builder(script_.definitions());
    Header header;
    header.set_pid(kPid);
    builder.OnHeader(header).IgnoreError();
    for (int64_t done = 0; done < events; done += kPart) {
      builder.OnEvents(Part(done, std::min(events, done + kPart))).IgnoreError();
    }
    trace_ = std::move(builder).Build();
  }

  const Trace& trace() const { return trace_; }
  const format::Definitions& definitions() { return script_.definitions(); }

 private:
  static constexpr int kStacks = 500;
  static constexpr size_t kHeld = 5000;
  static constexpr int64_t kPart = 100'000, kEventsPerStep = 20'000, kEventsPerReading = 10'000;
  static constexpr uint64_t kBase = uint64_t{1} << 40, kSlot = 4 << 20, kPid = 12;

  format::EventBatch Part(int64_t from, int64_t to) {
    format::EventBatch batch;
    for (int64_t i = from; i < to; ++i) {
      batch.events.push_back(Next(i, batch));
      batch.events.back().t_ns = i * 1000;
    }
    return batch;
  }

  format::Event Next(int64_t i, format::EventBatch& batch) {
    if (i == 0) return segment_;
    if (i % kEventsPerStep == 0) {
      mark_.index = static_cast<uint64_t>(i / kEventsPerStep);
      return mark_;
    }
    if (i % kEventsPerReading == 1) {
      sample_event_.detail = static_cast<uint32_t>(batch.samples.size());
      gmt::Sample& sample = batch.samples.emplace_back(sample_);
      sample.set_source("nvml");
      gmt::Sample::ProcessUse* process = sample.add_processes();
      process->set_pid(kPid);
      process->set_bytes(uint64_t{1} << 36);
      return sample_event_;
    }
    if (held_.size() < kHeld || i % 2 == 0) {
      block_.kind = ALLOC;
      block_.size = 512 * (1 + random_() % 4096);
      block_.address = kBase + slot_++ % (2 * kHeld) * kSlot;
      block_.stack = stacks_[random_() % stacks_.size()];
      held_.push_back(block_.address);
    } else {
      block_.kind = FREE;
      block_.address = held_.front();
      held_.pop_front();
    }
    return block_;
  }

  std::mt19937 random_;
  EventScript script_;
  std::vector<uint32_t> stacks_;
  format::Event segment_, block_, mark_, sample_event_;
  gmt::Sample sample_;
  std::deque<uint64_t> held_;
  uint64_t slot_ = 0;
  Trace trace_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TESTING_LONG_RECORDING_H_
