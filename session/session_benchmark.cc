// Measures what one event costs the traced process in the session. Compare numbers only within one
// run, because machines and their load differ. The clock call that every event makes is measured as
// a reference.

#include <benchmark/benchmark.h>
#include <time.h>

#include <string>

#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

// One session for all benchmarks, of the default size.
const ScratchSession& Session() {
  static const auto& session = *new ScratchSession(SessionSizes());
  return session;
}

Record Allocation(uint64_t address) {
  Record record;
  record.kind = Kind::kAlloc;
  record.space = Space::kDevice;
  record.memory = Memory::kDevice;
  record.value = address;
  record.size = 512;
  return record;
}

void BM_ClockGettime(benchmark::State& state) {
  timespec t;
  for (auto _ : state) {
    clock_gettime(CLOCK_MONOTONIC, &t);
    benchmark::DoNotOptimize(t);
  }
}
BENCHMARK(BM_ClockGettime);

void BM_RingWrite(benchmark::State& state) {
  const RingWriter ring = Session().map().ring_writer();
  const Words words = Pack(Allocation(0x1000));
  for (auto _ : state) ring.Commit(ring.Reserve(), words);
}
BENCHMARK(BM_RingWrite)->ThreadRange(1, 4)->UseRealTime();

// Meanwhile `range` allocations are live, which determines how full and how cold the table is.
void BM_LiveInsertErase(benchmark::State& state) {
  const LiveTable table = Session().map().live();
  const auto live = static_cast<uint64_t>(state.range(0));
  LiveValue value;
  for (uint64_t i = 0; i < live; ++i) table.Insert(Space::kDevice, i * 512 + 512, value);
  uint64_t next = 0;
  for (auto _ : state) {
    const uint64_t address = next++ % live * 512 + 512;
    benchmark::DoNotOptimize(table.Erase(Space::kDevice, address, &value));
    benchmark::DoNotOptimize(table.Insert(Space::kDevice, address, value));
  }
  for (uint64_t i = 0; i < live; ++i) table.Erase(Space::kDevice, i * 512 + 512, &value);
}
BENCHMARK(BM_LiveInsertErase)->Arg(100)->Arg(10000)->Arg(50000);

uint64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

// An allocation and its free, as recorded by hooks: times, live table and ring for two events.
void BM_AllocateAndFree(benchmark::State& state) {
  const RingWriter ring = Session().map().ring_writer();
  const LiveTable table = Session().map().live();
  const uint64_t base = uint64_t{1} << 40;
  LiveValue live;
  uint64_t next = static_cast<uint64_t>(state.thread_index()) << 30;
  for (auto _ : state) {
    Record record = Allocation(base + (next++ & 1023) * 512 +
                               (static_cast<uint64_t>(state.thread_index()) << 30));
    record.time_ns = NowNs();
    const auto alloc = ring.Reserve();
    live.ticket = alloc.ticket;
    table.Insert(record.space, record.value, live);
    ring.Commit(alloc, Pack(record));
    record.kind = Kind::kFree;
    record.time_ns = NowNs();
    const auto free = ring.Reserve();
    table.Erase(record.space, record.value, &live);
    ring.Commit(free, Pack(record));
  }
}
BENCHMARK(BM_AllocateAndFree)->ThreadRange(1, 4)->UseRealTime();

// Returns a stack with an interpreter frame in every three. Stacks share all but the first ten
// frames.
StackTable::Buffer SampleStack(uint64_t leaf, uint32_t depth) {
  StackTable::Buffer stack;
  stack.fingerprint = depth;
  for (uint32_t i = 0; i < depth; ++i) {
    const uint64_t address = 0x7f0000000000 + i * 64 + (i < 10 ? leaf * 4096 : 0);
    stack.frames[i] = i % 3 == 0 ? InterpreterFrame(address, i) : address;
  }
  return stack;
}

void BM_StackHit(benchmark::State& state) {
  const StackTable stacks = Session().map().stacks();
  const auto depth = static_cast<uint32_t>(state.range(0));
  const std::vector<uint32_t> codes(depth, 1);
  StackTable::Buffer stack = SampleStack(1, depth);
  const uint32_t like = stacks.Add(stack, depth, kStackPython, 0, codes.data(), 0);
  stack = SampleStack(2, depth);
  stacks.Add(stack, depth, kStackPython, 0, codes.data(), like);
  for (auto _ : state) benchmark::DoNotOptimize(stacks.Find(stack, depth, kStackPython, 0));
}
BENCHMARK(BM_StackHit)->Arg(10)->Arg(30)->Arg(70);

// Adds 100,000 stacks of 70 frames to a session; each differs from the previous one in its
// innermost ten frames.
void BM_NewStack(benchmark::State& state) {
  constexpr uint32_t kDepth = 70, kStacks = 100000;
  const std::vector<uint32_t> codes(kDepth, 1);
  uint64_t words = 0, kept = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto session = std::make_unique<ScratchSession>(SessionSizes());
    const StackTable stacks = session->map().stacks();
    state.ResumeTiming();
    uint32_t like = 0;
    kept = 0;
    for (uint64_t leaf = 0; leaf < kStacks; ++leaf) {
      StackTable::Buffer stack = SampleStack(leaf, kDepth);
      like = stacks.Add(stack, kDepth, kStackPython, 0, codes.data(), like);
      kept += like != 0 ? 1 : 0;
    }
    state.PauseTiming();
    words = session->control().arena_used.load();
    session.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(kStacks) * state.iterations());
  state.counters["stacks_kept"] = static_cast<double>(kept);
  state.counters["arena_bytes"] = static_cast<double>(words * sizeof(uint64_t));
}
BENCHMARK(BM_NewStack)->Unit(benchmark::kMillisecond)->Iterations(3);

void BM_ScanOfTheWholeTable(benchmark::State& state) {
  const LiveTable table = Session().map().live();
  LiveValue value;
  for (uint64_t i = 0; i < 50000; ++i) table.Insert(Space::kDevice, i * 512 + 512, value);
  uint64_t sum = 0;
  for (auto _ : state)
    table.Scan([&](Space, uint64_t address, const LiveValue&) { sum += address; });
  benchmark::DoNotOptimize(sum);
  for (uint64_t i = 0; i < 50000; ++i) table.Erase(Space::kDevice, i * 512 + 512, &value);
}
BENCHMARK(BM_ScanOfTheWholeTable)->Unit(benchmark::kMicrosecond);

void BM_CreateSession(benchmark::State& state) {
  for (auto _ : state) ScratchSession session{SessionSizes()};
}
BENCHMARK(BM_CreateSession)->Unit(benchmark::kMillisecond)->Iterations(20);

// More than the first level holds. This must run last, because the table remains grown afterwards.
BENCHMARK(BM_LiveInsertErase)->Arg(300000);

}  // namespace
}  // namespace gmt::session
