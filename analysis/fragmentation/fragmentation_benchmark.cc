// Fragmentation of a recording of 10 M events: 5 M blocks, 5,000 of them live, in 500 segments.

#include <benchmark/benchmark.h>

#include <vector>

#include "analysis/fragmentation/fragmentation.h"
#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kSegments = 500, kSlots = 20, kSlotBytes = 2 << 20;

// Each round frees and allocates one slot of each segment; every second slot stays free.
void Fill(EventScript& script, uint64_t blocks) {
  for (uint64_t i = 0; i < kSegments; ++i) {
    script.Alloc((i + 1) << 32, kSlots * kSlotBytes);
  }
  uint64_t written = 0;
  const auto place = [](uint64_t segment, uint64_t slot) {
    return ((segment + 1) << 32) + slot * kSlotBytes;
  };
  for (uint64_t round = 0; written < blocks; ++round) {
    for (uint64_t i = 0; i < kSegments && written < blocks; ++i, ++written) {
      const uint64_t slot = round * 2 % kSlots;
      if (round >= kSlots / 2) script.FreeBlock(place(i, slot));
      format::Event& event = script.Block(place(i, slot), kSlotBytes / 2);
      event.present |= format::kHasStream;
      event.stream = i % 4;
    }
  }
}

void BM_FragmentationAfter(benchmark::State& state) {
  EventScript script;
  Fill(script, static_cast<uint64_t>(state.range(0)));
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  for (auto _ : state) {
    benchmark::DoNotOptimize(FragmentationAfter(examination, 0, trace.last_step()).free_bytes);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(trace.rows.count()));
}
BENCHMARK(BM_FragmentationAfter)->Arg(100'000)->Arg(5'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
