// A training loop of events: blocks that live for a step, blocks that live on, a few hundred
// stacks.

#include <benchmark/benchmark.h>

#include <deque>
#include <random>

#include "analysis/event_script.h"
#include "analysis/layers.h"
#include "analysis/replay.h"
#include "analysis/report.h"

namespace gmt::analysis {
namespace {

constexpr int kStacks = 500;
constexpr size_t kHeldBlocks = 5000;

format::EventBatch TrainingLoop(EventScript& script, int64_t events) {
  std::mt19937 random(7);
  std::vector<uint32_t> stacks;
  for (int i = 0; i < kStacks; ++i)
    stacks.push_back(script.Stack({"f" + std::to_string(i), "main"}));
  format::Event block = script.Block(0, 1);
  format::EventBatch batch;
  batch.events.reserve(static_cast<size_t>(events));
  std::deque<uint64_t> held;
  uint64_t next = uint64_t{1} << 40;
  for (int64_t i = 0; i < events; ++i) {
    block.t_ns = i * 1000;
    if (held.size() < kHeldBlocks || i % 2 == 0) {
      block.kind = ALLOC;
      block.size = 512 * (1 + random() % 4096);
      block.address = next;
      block.stack = stacks[random() % stacks.size()];
      next += block.size;
      held.push_back(block.address);
    } else {
      block.kind = FREE;
      block.address = held.front();
      held.pop_front();
    }
    batch.events.push_back(block);
  }
  return batch;
}

struct Prepared {
  explicit Prepared(int64_t events) : batch(TrainingLoop(script, events)) {}
  Trace Build() {
    TraceBuilder builder(script.definitions());
    builder.OnEvents(batch).IgnoreError();
    return std::move(builder).Build();
  }
  EventScript script;
  format::EventBatch batch;
};

void BuildTrace(benchmark::State& state) {
  Prepared prepared(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(prepared.Build());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BuildTrace)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void ReplayTrace(benchmark::State& state) {
  const Trace trace = Prepared(state.range(0)).Build();
  for (auto _ : state) benchmark::DoNotOptimize(Replay(trace).devices());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ReplayTrace)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void ReportAtPeak(benchmark::State& state) {
  Prepared prepared(state.range(0));
  const Trace trace = prepared.Build();
  for (auto _ : state) {
    benchmark::DoNotOptimize(MakeReport(trace, prepared.script.definitions(), {}));
  }
}
BENCHMARK(ReportAtPeak)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
