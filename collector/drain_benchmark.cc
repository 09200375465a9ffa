// Measures how fast a session is drained to records, to the live set, and to a recording, with the
// collector's own code. The events are those of a training loop (format/allocator_trace.h). The
// ring is filled, which is not timed, and then drained until it is empty.
//
// Time is processor time of the draining thread, so that other load does not count.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "collector/collector.h"
#include "format/allocator_trace.h"
#include "format/definitions_builder.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

using session::Record;

constexpr uint64_t kSeed = 20261;
constexpr uint64_t kFill = 131072;  // half of the ring
constexpr uint32_t kFramesOfStack = 24;

double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// A session of a traced process without the process, in tmpfs like a real one.
class BusyTarget {
 public:
  BusyTarget() : trace_(kSeed) {
    char directory[] = "/dev/shm/gmt-benchmark-XXXXXX";
    directory_ = mkdtemp(directory);
    setenv("GPUMEMTRACE_DIR", directory_.c_str(), 1);
    char buffer[1024];
    session::InfoWriter info(buffer, sizeof buffer);
    info.Add("exe", "/usr/bin/python3");
    info.Add("api", "1 cudaMalloc");
    if (session::CreateSession({}, info.text(), &session_) != 0) std::abort();
    DefineStacks();
  }
  ~BusyTarget() {
    munmap(session_.base, session_.size);
    close(session_.fd);
    std::filesystem::remove_all(directory_);
  }

  const session::SessionMap& map() const { return session_.map; }
  const std::string& directory() const { return directory_; }

  void Fill() {
    const session::RingWriter ring = session_.map.ring_writer();
    for (uint64_t n = 0; n < kFill; ++n) ring.Commit(ring.Reserve(), session::Pack(NextRecord()));
  }

 private:
  void DefineStacks() {
    stacks_ = {0};
    for (uint32_t stack = 1; stack <= format::AllocatorTrace::kStacks; ++stack) {
      session::StackTable::Buffer buffer;
      for (uint32_t depth = 0; depth < kFramesOfStack; ++depth) {
        const uint32_t branch = depth < 4 ? stack : stack % (1 + kFramesOfStack - depth);
        buffer.frames[depth] = 0x7f00000000 + depth * 0x10000 + branch * 16;
      }
      buffer.fingerprint = 0;
      stacks_.push_back(session_.map.stacks().Add(buffer, kFramesOfStack, 0, 0, nullptr, 0));
    }
  }

  Record NextRecord() {
    const format::Event event = trace_.Next();
    const bool block = event.memory == gmt::BLOCK;
    Record record;
    record.kind = static_cast<session::Kind>(event.kind);
    record.space = block ? session::Space::kBlock : session::Space::kDevice;
    record.memory = static_cast<session::Memory>(event.memory);
    record.device = 0;
    record.context = block ? 0 : 1;
    record.api = block ? 0 : 1;
    record.thread = event.thread;
    record.stack = stacks_[event.stack];
    record.time_ns = session_.map.header().monotonic_ns + static_cast<uint64_t>(event.t_ns);
    record.value = event.address;
    record.size = event.kind == gmt::ALLOC ? event.size : 0;
    record.duration_ns = event.duration_ns;
    record.total_allocated = event.total_allocated;
    record.total_reserved = event.total_reserved;
    return record;
  }

  std::string directory_;
  session::CreatedSession session_;
  std::vector<uint32_t> stacks_;
  format::AllocatorTrace trace_;
};

// Calls drain() on full rings and measures its time.
template <typename Drain>
void Measure(benchmark::State& state, BusyTarget& target, Drain drain) {
  for (auto _ : state) {
    target.Fill();
    const double start = ThreadSeconds();
    drain();
    state.SetIterationTime(ThreadSeconds() - start);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kFill));
}

template <typename Take>
void DrainAll(SessionDrain& drain, Take take) {
  Record record;
  uint64_t ticket;
  SessionDrain::Lost lost;
  while (drain.Next(TargetState::kRunning, &record, &ticket, &lost) ==
         SessionDrain::Outcome::kRecord) {
    take(record, ticket);
  }
}

void BM_DrainToRecords(benchmark::State& state) {
  BusyTarget target;
  SystemClock clock(-1);
  SessionDrain drain(target.map(), &clock);
  uint64_t bytes = 0;
  Measure(state, target,
          [&] { DrainAll(drain, [&](const Record& record, uint64_t) { bytes += record.size; }); });
  benchmark::DoNotOptimize(bytes);
}
BENCHMARK(BM_DrainToRecords)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_DrainToLiveSet(benchmark::State& state) {
  BusyTarget target;
  SystemClock clock(-1);
  SessionDrain drain(target.map(), &clock);
  LiveModel live;
  Measure(state, target, [&] {
    DrainAll(drain, [&](const Record& record, uint64_t ticket) { live.Apply(record, ticket); });
  });
  state.counters["live"] = static_cast<double>(live.entries().size());
}
BENCHMARK(BM_DrainToLiveSet)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_DrainToRecording(benchmark::State& state) {
  BusyTarget target;
  SystemClock clock(-1);
  Target process(target.map().header(), -1);
  const std::string path = target.directory() + "/out.gmt";
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  auto collector =
      Collector::Start({target.map(), &process, &clock}, std::make_unique<OutputFile>(fd));
  if (!collector.ok()) return state.SkipWithError("no recording");
  Measure(state, target, [&] {
    while ((*collector)->Round()) {
    }
  });
  state.counters["bytes"] = static_cast<double>(std::filesystem::file_size(path)) /
                            static_cast<double>(state.iterations() * static_cast<int64_t>(kFill));
  close(fd);
}
BENCHMARK(BM_DrainToRecording)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gmt::collector
