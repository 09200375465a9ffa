// Leak search in a training loop with 500 stacks, 5,000 held blocks and five million rows; and
// beside a running program, event by event.

#include <benchmark/benchmark.h>

#include <deque>
#include <random>

#include "analysis/leaks/leak_watcher.h"
#include "analysis/leaks/leaks.h"
#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kStacks = 500;
constexpr size_t kHeld = 5000;
constexpr int64_t kEventsOfCycle = 2000;

// The stacks take turns, so that they recur; one block in a thousand is kept.
format::EventBatch TrainingLoop(EventScript& script, int64_t events, bool marks) {
  std::vector<uint32_t> stacks;
  for (uint32_t i = 0; i < kStacks; ++i)
    stacks.push_back(script.Stack({"f" + std::to_string(i), "main"}));
  format::Event block = script.Block(0, 1);
  format::Event mark = script.Mark("step", 0);
  format::EventBatch batch;
  batch.events.reserve(static_cast<size_t>(events));
  std::deque<uint64_t> held;
  uint64_t next = uint64_t{1} << 40;
  uint32_t turn = 0;
  for (int64_t i = 0; i < events; ++i) {
    block.t_ns = mark.t_ns = i * 1000;
    if (marks && i % kEventsOfCycle == 0) batch.events.push_back(mark);
    if (held.size() < kHeld || i % 2 == 0) {
      block.kind = ALLOC;
      block.size = 4096;
      block.address = next;
      block.stack = stacks[turn++ % kStacks];
      next += block.size;
      if (turn % 1000 != 7) held.push_back(block.address);
    } else {
      block.kind = FREE;
      block.address = held.front();
      held.pop_front();
    }
    batch.events.push_back(block);
  }
  return batch;
}

void FindLeaksIn(benchmark::State& state) {
  EventScript script;
  TraceBuilder builder(script.definitions());
  const format::EventBatch batch = TrainingLoop(script, state.range(0), state.range(1) != 0);
  script.definitions();
  builder.OnEvents(batch).IgnoreError();
  const Trace trace = std::move(builder).Build();
  for (auto _ : state) {
    const Examination examination(trace, script.definitions());
    benchmark::DoNotOptimize(FindLeaks(examination));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(FindLeaksIn)
    ->ArgNames({"events", "marks"})
    ->Args({10'000'000, 1})
    ->Args({10'000'000, 0})
    ->Unit(benchmark::kMillisecond);

// Per event, without the evidence at the end.
void WatchEvents(benchmark::State& state) {
  EventScript script;
  const format::EventBatch batch = TrainingLoop(script, state.range(0), state.range(1) != 0);
  const format::Definitions& definitions = script.definitions();
  for (auto _ : state) {
    LeakWatcher watcher(definitions, 1);
    for (const format::Event& event : batch.events) watcher.OnEvent(event);
    benchmark::DoNotOptimize(watcher.cycles());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(WatchEvents)
    ->ArgNames({"events", "marks"})
    ->Args({1'000'000, 1})
    ->Args({1'000'000, 0})
    ->Unit(benchmark::kMillisecond);

// The cost of one answer with 500 sites.
void WatchEvidence(benchmark::State& state) {
  EventScript script;
  const format::EventBatch batch = TrainingLoop(script, 1'000'000, true);
  LeakWatcher watcher(script.definitions(), 1);
  for (const format::Event& event : batch.events) watcher.OnEvent(event);
  for (auto _ : state) benchmark::DoNotOptimize(watcher.Evidence());
}
BENCHMARK(WatchEvidence)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gmt::analysis
