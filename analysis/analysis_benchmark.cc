// A training loop as events: blocks that live for a step, blocks that live longer, a few hundred
// stacks.

#include <benchmark/benchmark.h>

#include <deque>
#include <random>

#include "analysis/examination/layers.h"
#include "analysis/examination/replay.h"
#include "analysis/report/report.h"
#include "analysis/testing/event_script.h"
#include "analysis/trace/stream_order.h"

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
    benchmark::DoNotOptimize(MakeReport(Examination(trace, prepared.script.definitions()), {}));
  }
}
BENCHMARK(ReportAtPeak)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// Like a program whose stacks hardly ever recur: few frames in ever new combinations. Of the 40
// frames of a stack, the outer ones follow one of a few paths through the program.
constexpr int kDeep = 40, kInner = 16, kFramesAtADepth = 75;

void BlocksOfManyStacks(EventScript& script, int64_t stacks) {
  std::mt19937 random(7);
  format::DefinitionsBuilder& builder = script.builder();
  std::vector<std::vector<uint32_t>> frames(kDeep);
  for (int depth = 0; depth < kDeep; ++depth) {
    for (int i = 0; i < kFramesAtADepth; ++i) {
      format::FrameInfo frame;
      const std::string number = std::to_string(depth * kFramesAtADepth + i);
      frame.function = builder.InternString("at::native::operation_" + number + "(at::Tensor)");
      frame.file = builder.InternString("/site-packages/library/module_" + number + ".py");
      frame.line = 10;
      frame.language = depth % 2 == 0 ? format::Language::kPython : format::Language::kNative;
      frames[static_cast<size_t>(depth)].push_back(builder.InternFrame(frame));
    }
  }
  for (int64_t i = 0; i < stacks; ++i) {
    std::vector<uint32_t> stack;
    const size_t way = random() % kFramesAtADepth;
    for (int depth = 0; depth < kDeep; ++depth) {
      const auto& at_depth = frames[static_cast<size_t>(depth)];
      stack.push_back(at_depth[depth < kInner ? random() % at_depth.size() : way]);
    }
    const uint64_t address = (uint64_t{1} << 40) + static_cast<uint64_t>(i) * 4096;
    script.Block(address, 4096).stack = builder.InternStack(stack, 0);
  }
}

void ReportOfManyStacks(benchmark::State& state) {
  EventScript script;
  BlocksOfManyStacks(script, state.range(0));
  const Trace trace = script.Build();
  if (script.definitions().StackFrames(trace.rows.stack[0]).size() != kDeep)
    return state.SkipWithError("the stacks are not defined");
  for (auto _ : state) {
    benchmark::DoNotOptimize(MakeReport(Examination(trace, script.definitions()), {}));
  }
}
BENCHMARK(ReportOfManyStacks)->Arg(131'072)->Unit(benchmark::kMillisecond)->Iterations(1);

// Without StackTexts: describes every stack separately, and every frame by every rule.
void DescribeEachOfManyStacks(benchmark::State& state) {
  EventScript script;
  BlocksOfManyStacks(script, state.range(0));
  const Trace trace = script.Build();
  for (auto _ : state) {
    for (RowId row = 0; row < trace.rows.count(); ++row) {
      const auto frames = DescribeStack(script.definitions(), trace.rows.stack[row]);
      benchmark::DoNotOptimize(LibraryOf(frames));
    }
  }
}
BENCHMARK(DescribeEachOfManyStacks)->Arg(131'072)->Unit(benchmark::kMillisecond)->Iterations(1);

// Streams that pass work to each other, half of them blocking, with a question at every fourth
// call.
void OrderOfStreams(benchmark::State& state) {
  const auto calls = state.range(0);
  const auto streams = static_cast<uint64_t>(state.range(1));
  for (auto _ : state) {
    StreamOrder order;
    std::mt19937 random(7);
    uint64_t answers = 0;
    for (int64_t i = 0; i < calls; ++i) {
      const HostCall call{i * 10, i * 10 + 5, 1, 1};
      const uint64_t stream = 0x1000 + random() % streams, event = random() % 512;
      if (i < static_cast<int64_t>(streams)) {
        order.OnStreamCreated(call, 0x1000 + static_cast<uint64_t>(i), i % 2 == 0);
        continue;
      }
      switch (i % 8) {
        case 0:
        case 4:
          order.Ask(call, stream, static_cast<uint32_t>(i));
          break;
        case 1:
        case 5:
        case 6:
          order.OnRecord(call, i % 64 == 1 ? StreamOrder::kLegacy : stream, event);
          break;
        case 2:
        case 7:
          order.OnWait(call, stream, event);
          break;
        default:
          i % 4096 == 3 ? order.OnDeviceDone(call) : order.OnEventDone(call, event);
      }
      answers += order.TakeAnswers().size();
    }
    benchmark::DoNotOptimize(answers);
  }
  state.SetItemsProcessed(state.iterations() * calls);
}
BENCHMARK(OrderOfStreams)
    ->Args({1'000'000, 4})
    ->Args({1'000'000, 64})
    ->Args({10'000'000, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::analysis
