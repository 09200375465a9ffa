// The speed of one replay of a training loop, and of a whole scenario, which takes several.

#include <cstdint>
#include <random>
#include <vector>

#include "analysis/whatif/replay.h"
#include "benchmark/benchmark.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kSteps = 200, kLayers = 48, kTemporaries = 6;

// Steps of a model whose layers save an activation each, with temporaries in both passes. Every
// eighth batch is larger.
class TrainingLoop {
 public:
  AllocatorHistory Make() {
    for (uint32_t parameter = 0; parameter < 4 * kLayers; ++parameter)
      Allocate((1 + parameter % 7) * 262144);
    for (uint32_t step = 0; step < kSteps; ++step) Step(step % 8 == 0 ? 3 : 2);
    history_.device_bytes = uint64_t{80} << 30;
    return history_;
  }

 private:
  void Step(uint64_t batch) {
    std::vector<uint32_t> saved;
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      saved.push_back(Allocate(batch * (1 + layer % 5) * 700000));
      AllocateTemporaries(batch);
    }
    for (uint32_t layer = kLayers; layer-- > 0;) {
      AllocateTemporaries(batch);
      Free(saved[layer]);
    }
  }
  void AllocateTemporaries(uint64_t batch) {
    for (uint32_t i = 0; i < kTemporaries; ++i) Free(Allocate(batch * (1 + random_() % 90000)));
  }
  uint32_t Allocate(uint64_t bytes) {
    history_.requests.push_back({AllocatorRequest::kAllocate, 0, 0, next_, bytes});
    return next_++;
  }
  void Free(uint32_t allocation) {
    history_.requests.push_back({AllocatorRequest::kFree, 0, 0, allocation, 0});
  }

  std::minstd_rand random_{1};
  AllocatorHistory history_;
  uint32_t next_ = 0;
};

Scenario WithSettings(const benchmark::State& state) {
  Scenario scenario;
  scenario.settings.expandable_segments = state.range(0) != 0;
  return scenario;
}

void BM_Reproduce(benchmark::State& state) {
  AllocatorHistory history = TrainingLoop().Make();
  history.settings = WithSettings(state).settings;
  for (auto _ : state) benchmark::DoNotOptimize(Reproduce(history));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * history.requests.size()));
}
BENCHMARK(BM_Reproduce)->ArgName("expandable")->Arg(0)->Arg(1);

void BM_Predict(benchmark::State& state) {
  const AllocatorHistory history = TrainingLoop().Make();
  for (auto _ : state) benchmark::DoNotOptimize(Predict(history, WithSettings(state)));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * history.requests.size()));
}
BENCHMARK(BM_Predict)->ArgName("expandable")->Arg(0)->Arg(1);

}  // namespace
}  // namespace gmt::analysis
