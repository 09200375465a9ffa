// The ledger of a recording of 10 M events, 1,000 of them readings.

#include <benchmark/benchmark.h>

#include "analysis/ledger/ledger.h"
#include "analysis/testing/long_recording.h"

namespace gmt::analysis {
namespace {

void BM_MakeLedgers(benchmark::State& state) {
  LongRecording recording(state.range(0), 7);
  for (auto _ : state) {
    // The time of the first answer includes what answers share.
    const Examination examination(recording.trace(), recording.definitions());
    benchmark::DoNotOptimize(MakeLedgers(examination, {})->front().driver_used_bytes);
  }
}
BENCHMARK(BM_MakeLedgers)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
