// One id of a long training loop, with blocks that live for a step and blocks that live longer.

#include <benchmark/benchmark.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "analysis/show/changes.h"
#include "analysis/show/life.h"
#include "analysis/show/place.h"
#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

constexpr int kStacks = 500;
constexpr size_t kHeldBlocks = 5000;
constexpr int64_t kEventsPerStep = 10'000;

struct Prepared {
  explicit Prepared(int64_t events) {
    std::mt19937 random(7);
    std::vector<uint32_t> stacks;
    for (int i = 0; i < kStacks; ++i)
      stacks.push_back(script.Stack({"f" + std::to_string(i), "main"}));
    format::Event block = script.Block(0, 1), mark = script.Mark("step", 0);
    format::EventBatch batch;
    std::deque<uint64_t> held;
    uint64_t next = uint64_t{1} << 40;
    for (int64_t i = 0; i < events; ++i) {
      if (i % kEventsPerStep == 0) {
        mark.t_ns = i * 1000;
        batch.events.push_back(mark);
      }
      block.t_ns = i * 1000;
      block.kind = held.size() < kHeldBlocks || i % 2 == 0 ? ALLOC : FREE;
      if (block.kind == ALLOC) {
        block.size = 512 * (1 + random() % 4096);
        block.address = next;
        block.stack = stacks[random() % stacks.size()];
        next += block.size;
        held.push_back(block.address);
      } else {
        block.address = held.front();
        held.pop_front();
      }
      batch.events.push_back(block);
    }
    TraceBuilder builder(script.definitions());
    builder.OnEvents(batch).IgnoreError();
    trace = std::move(builder).Build();
  }
  EventScript script;
  Trace trace;
};

// Does not count what all answers share: it is computed once for all of them.
void LifeOfAHeap(benchmark::State& state) {
  Prepared prepared(state.range(0));
  const Examination examination(prepared.trace, prepared.script.definitions());
  const Categories categories = Categorize(examination);
  examination.cycles(), examination.replay();
  for (auto _ : state) {
    const Selection selection = Select(examination, categories, {}, *ParseSubject("heap/pytorch"));
    benchmark::DoNotOptimize(LifeOf(examination, categories, selection, 60));
  }
}
BENCHMARK(LifeOfAHeap)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void LifeOfAStack(benchmark::State& state) {
  Prepared prepared(state.range(0));
  const Examination examination(prepared.trace, prepared.script.definitions());
  const Categories categories = Categorize(examination);
  examination.cycles(), examination.replay();
  for (auto _ : state) {
    const Selection selection = Select(examination, categories, {}, *ParseSubject("stack/2"));
    benchmark::DoNotOptimize(LifeOf(examination, categories, selection, 60));
  }
}
BENCHMARK(LifeOfAStack)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void LifeOfAnAddress(benchmark::State& state) {
  Prepared prepared(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(PlaceAt(prepared.trace, uint64_t{1} << 41));
}
BENCHMARK(LifeOfAnAddress)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
