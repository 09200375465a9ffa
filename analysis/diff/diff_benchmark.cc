// Comparison of two recordings of 10 M events each, in which different stacks hold different sizes.

#include <benchmark/benchmark.h>

#include "analysis/diff/diff.h"
#include "analysis/testing/long_recording.h"

namespace gmt::analysis {
namespace {

// Excludes the categories, which are a separate answer.
void BM_Compare(benchmark::State& state) {
  LongRecording base(state.range(0), 7), changed(state.range(0), 8);
  const Categories before = Categorize(Examination(base.trace(), base.definitions()));
  const Categories after = Categorize(Examination(changed.trace(), changed.definitions()));
  for (auto _ : state) {
    const Examination x(base.trace(), base.definitions());
    const Examination y(changed.trace(), changed.definitions());
    benchmark::DoNotOptimize(Compare(x, before, y, after, {})->devices.front().rows.size());
  }
}
BENCHMARK(BM_Compare)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
