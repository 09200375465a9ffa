// Cost of categories and of the step profile for a recording of N events.

#include <benchmark/benchmark.h>

#include <memory>

#include "analysis/categories/step_profile.h"
#include "analysis/examination/examination.h"
#include "analysis/testing/training_script.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kBlocks = 250;  // per kind and step

// Steps of a loop, with separate stacks for each layer.
struct Loop {
  explicit Loop(int64_t events) {
    std::vector<uint32_t> forward, backward;
    for (uint64_t i = 0; i < kBlocks; ++i) {
      forward.push_back(script.InForward("at::native::op" + std::to_string(i)));
      backward.push_back(script.InBackward("Node" + std::to_string(i)));
    }
    for (uint64_t i = 0; i < kBlocks; ++i) {
      script.Block(0x100000000 + i * 0x10000, 512 * (i + 1), script.Parameter());
    }
    const int64_t steps = events / static_cast<int64_t>(6 * kBlocks);
    for (int64_t step = 0; step < steps; ++step) Step(step == 0, forward, backward);
    trace = std::make_unique<Trace>(script.script().Build());
  }
  void Step(bool first, const std::vector<uint32_t>& forward,
            const std::vector<uint32_t>& backward) {
    for (uint64_t i = 0; i < kBlocks; ++i) {
      script.Block(0x200000000 + i * 0x10000, 512 * (i % 40 + 1), forward[i]);
      script.Block(0x300000000, 512, forward[i]);
      script.Free(0x300000000);
    }
    script.Backward([&] {
      for (uint64_t i = 0; i < kBlocks; ++i) {
        script.Block(0x400000000 + i * 0x10000, 512 * (i + 1), backward[i]);
        script.Free(0x200000000 + i * 0x10000);
      }
    });
    script.Optimizer([&] {
      for (uint64_t i = 0; i < kBlocks && first; ++i) {
        script.Block(0x500000000 + i * 0x10000, 512 * (i + 1), script.State());
      }
    });
    for (uint64_t i = 0; i < kBlocks; ++i) script.Free(0x400000000 + i * 0x10000);
  }

  TrainingScript script;
  std::unique_ptr<Trace> trace;
};

// Keeps one at a time, because a large one takes gigabytes.
Loop& LoopOf(int64_t events) {
  static int64_t made = 0;
  static std::unique_ptr<Loop> loop;
  if (made != events) loop = std::make_unique<Loop>(events);
  made = events;
  return *loop;
}

void BM_Categorize(benchmark::State& state) {
  Loop& loop = LoopOf(state.range(0));
  const Examination examination(*loop.trace, loop.script.script().definitions());
  benchmark::DoNotOptimize(examination.cycles());
  for (auto _ : state) benchmark::DoNotOptimize(Categorize(examination));
  state.counters["rows"] = static_cast<double>(loop.trace->rows.count());
}
BENCHMARK(BM_Categorize)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void BM_StepProfile(benchmark::State& state) {
  Loop& loop = LoopOf(state.range(0));
  const Examination examination(*loop.trace, loop.script.script().definitions());
  const Categories categories = Categorize(examination);
  for (auto _ : state) benchmark::DoNotOptimize(MakeStepProfile(examination, categories, 0));
}
BENCHMARK(BM_StepProfile)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
