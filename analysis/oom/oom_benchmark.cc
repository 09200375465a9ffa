// Explains the failure at the end of a training loop of 10 M events: 5 M blocks, 5,000 of them
// live, from 500 stacks.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "analysis/oom/oom.h"
#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kLive = 5000, kStacks = 500, kBlockBytes = 1 << 21, kBlocksOfAStep = 5000;

void Train(EventScript& script, uint64_t blocks) {
  const uint64_t base = uint64_t{1} << 40;
  for (uint64_t i = 0; i < kLive; ++i) script.Alloc(base + i * 2 * kBlockBytes, kBlockBytes);
  std::vector<EventScript::Functions> stacks;
  for (uint64_t i = 0; i < kStacks; ++i) stacks.push_back({"site" + std::to_string(i), "main"});
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t address = base + i % kLive * 2 * kBlockBytes;
    if (i >= kLive) script.FreeBlock(address);
    format::Event& event = script.Block(address, kBlockBytes / 2, stacks[i % kStacks]);
    event.present |= format::kHasStream;
    if (i % kBlocksOfAStep == 0) script.Mark("step", i / kBlocksOfAStep);
  }
  script.Failed(1 << 30).result = 2;
  script.Failed(1 << 30).result = 2;
  script.FailedBlock(1 << 30, {"request", "main"});
}

void BM_ExplainOom(benchmark::State& state) {
  EventScript script;
  Train(script, static_cast<uint64_t>(state.range(0)));
  const Trace trace = script.Build();
  for (auto _ : state) {
    state.PauseTiming();
    const Examination examination(trace, script.definitions());
    const Categories categories = Categorize(examination);
    const LeakReport leaks = FindLeaks(examination);
    state.ResumeTiming();
    benchmark::DoNotOptimize(ExplainOom(examination, categories, leaks).requested_bytes);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(trace.rows.count()));
}
BENCHMARK(BM_ExplainOom)->Arg(500'000)->Arg(5'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
