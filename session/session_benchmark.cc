// What one event costs the traced process in the session. Compare within one run: machines and
// neighbours differ, so the clock call that every event makes as well is measured beside it.

#include <benchmark/benchmark.h>
#include <time.h>

#include <string>

#include "session/session_fixture.h"

namespace gmt::session {
namespace {

// One session for all benchmarks, of the size that programs get.
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

// `range` allocations are live meanwhile: how full the table is, and how cold.
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

// An allocation and its free, as hooks record them: time, table and ring of two events.
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

void BM_StackHit(benchmark::State& state) {
  const StackTable stacks = Session().map().stacks();
  StackTable::Buffer buffer;
  const auto depth = static_cast<uint32_t>(state.range(0));
  for (uint64_t i = 0; i < depth; ++i) buffer.frames[i] = 0x7f0000000000 + i * 64;
  bool is_new;
  for (auto _ : state) benchmark::DoNotOptimize(stacks.Intern(&buffer, depth, 0, 0, &is_new));
}
BENCHMARK(BM_StackHit)->Arg(10)->Arg(30)->Arg(100);

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

}  // namespace
}  // namespace gmt::session
