// Measures recording a program for days. `week` drains a compressed training run
// (collector/testing/long_training.h) into a recording with bounded history and checks the result.
// `cost` records one at a real program's pace with a collector process and measures its processor
// time.
//
//   long_run week EVENTS MAX_SIZE DIRECTORY      exits with 1 if a check fails
//   long_run cost RATE SECONDS COLLECTOR         prints JSON: the collector's share of one core
//
// `week` leaves DIRECTORY/week.gmt and its parts, and prints what a reader must find in it.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "collector/collector.h"
#include "collector/testing/long_training.h"
#include "format/definitions_builder.h"
#include "format/parts.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kSeed = 20262;
constexpr uint64_t kMaxMemory = 256 << 20;  // of the collector and the training run together
constexpr uint64_t kMaxLeaked = 20000;      // maximum number of blocks that the training run leaks
constexpr uint64_t kStepTime = kSecond / 20;  // of the compressed clock
constexpr double kMinPause = 1e-4;            // seconds; shorter sleeps are not reliable
constexpr uint64_t kChunk = 4 << 20;          // may exceed the limit briefly: the base of a part

session::SessionSizes Sizes() { return {}; }

uint64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    const uint64_t size = file.file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

// Removes the files of an earlier run.
void RemoveWeeks(const std::string& directory) {
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (file.path().filename().string().rfind("week.", 0) == 0) std::filesystem::remove(file);
  }
}

int failures = 0;

void Check(bool holds, const char* what, uint64_t have, uint64_t want) {
  std::printf("%-44s %14" PRIu64 "  %s %" PRIu64 "\n", what, have, holds ? "ok," : "WRONG:", want);
  if (!holds) ++failures;
}

// What a reader finds at the end of the recording.
class FinalState : public format::RecordingVisitor {
 public:
  absl::Status OnEvents(const format::EventBatch& batch) override {
    events += batch.events.size();
    gaps += batch.gaps.size();
    return absl::OkStatus();
  }
  absl::Status OnSnapshot(const gmt::Snapshot& snapshot) override {
    if (snapshot.name() == "exit") exit = snapshot;
    return absl::OkStatus();
  }
  absl::Status OnAggregates(const gmt::Aggregates& aggregates) override {
    last = aggregates;
    return absl::OkStatus();
  }

  uint64_t events = 0, gaps = 0;
  gmt::Snapshot exit;
  gmt::Aggregates last;
};

void CheckRecording(const std::string& path, const LongTraining& training) {
  auto reader = format::RecordingReader::Open(path);
  FinalState words;
  const bool read = reader.ok() && (*reader)->Read(words).ok() && (*reader)->complete();
  Check(read, "recording is complete", read, 1);
  Check(words.gaps == 0, "gaps", words.gaps, 0);
  Check(words.exit.exact(), "live set is exact", words.exit.exact(), 1);
  const bool same = Recording::LiveOf(words.exit) == training.live();
  Check(same, "live set at the end", words.exit.live().count(), training.live().size());
  const gmt::HeapCounts heap =
      words.last.heaps_size() == 1 ? words.last.heaps(0) : gmt::HeapCounts();
  Check(heap.allocations() == training.allocations(), "allocations since the start",
        heap.allocations(), training.allocations());
  Check(heap.live_bytes() == training.live_bytes(), "bytes held", heap.live_bytes(),
        training.live_bytes());
  Check(heap.peak_bytes() == training.peak_bytes(), "peak since the start", heap.peak_bytes(),
        training.peak_bytes());
  std::printf("%-44s %14" PRIu64 "\n", "events kept", words.events);
}

int Week(uint64_t events, const std::string& max_size, const std::string& directory) {
  uint64_t limit = 0;
  if (!session::ParseSize(max_size, &limit)) return 2;
  std::filesystem::create_directories(directory);
  RemoveWeeks(directory);
  const std::string path = directory + "/week.gmt";
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return std::perror(path.c_str()), 2;

  FakeTarget target(Sizes(), "max_size=" + max_size);
  const uint64_t steps = events / (2 * LongTraining::kActivations + 1) + 1;
  LongTraining training(&target, std::max<uint64_t>(1, steps / kMaxLeaked), kSeed);
  FakeClock clock;
  clock.now_ns = target.now_ns;
  Target process(target.map().header(), -1);
  PartFiles parts(fd);
  CollectorDependencies deps = {target.map(), &process, &clock};
  deps.parts = &parts;
  auto collector = Collector::Start(deps, std::make_unique<OutputFile>(fd));
  if (!collector.ok()) return std::fprintf(stderr, "no recording\n"), 2;

  uint64_t most_bytes = 0;
  double collecting = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    training.Step();
    target.now_ns = clock.now_ns = std::max(target.now_ns, clock.now_ns + kStepTime);
    if (step % 20 != 0) continue;
    const double began = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    while ((*collector)->Round()) {
    }
    collecting += Seconds(CLOCK_PROCESS_CPUTIME_ID) - began;
    most_bytes = std::max(most_bytes, BytesIn(directory));
  }
  target.Exit(0);
  const absl::Status status = (*collector)->Run();
  most_bytes = std::max(most_bytes, BytesIn(directory));

  std::printf("%-44s %14" PRIu64 "\n", "events", training.events());
  std::printf("%-44s %14" PRIu64 "\n", "steps", training.steps());
  std::printf("%-44s %14" PRIu64 "  one every %" PRIu64 " steps\n", "blocks leaked",
              training.leaked(), std::max<uint64_t>(1, steps / kMaxLeaked));
  std::printf("%-44s %14.0f\n", "ns of processor time an event",
              collecting * 1e9 / static_cast<double>(training.events()));
  Check(status.ok(), "collector ended well", status.ok(), 1);
  Check(most_bytes <= limit + kChunk, "bytes on disk, at most", most_bytes, limit);
  Check(PeakMemory() <= kMaxMemory, "memory of this process, at most", PeakMemory(), kMaxMemory);
  collector->reset();
  CheckRecording(path, training);
  close(fd);
  return failures == 0 ? 0 : 1;
}

// Starts a collector process as a user would.
pid_t StartCollector(const std::string& program, const std::string& session,
                     const std::string& output) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  execl(program.c_str(), program.c_str(), "--session", session.c_str(), "--output", output.c_str(),
        static_cast<char*>(nullptr));
  _exit(127);
}

int Cost(uint64_t rate, uint64_t seconds, const std::string& program) {
  FakeTarget target(Sizes());
  LongTraining training(&target, 1000, kSeed);
  const std::string output = target.directory() + "/cost.gmt";
  const pid_t pid = StartCollector(program, target.path(), output);
  const double began = Seconds(CLOCK_MONOTONIC);
  // Events are spread evenly: a real program does not produce bursts between which the collector
  // could sleep.
  training.after_event = [&] {
    const double due = began + static_cast<double>(training.events()) / static_cast<double>(rate);
    const double wait = due - Seconds(CLOCK_MONOTONIC);
    if (wait > kMinPause) usleep(static_cast<useconds_t>(wait * 1e6));
  };
  while (Seconds(CLOCK_MONOTONIC) - began < static_cast<double>(seconds)) {
    target.now_ns = std::max(target.now_ns, static_cast<uint64_t>(Seconds(CLOCK_MONOTONIC) * 1e9));
    training.Step();
  }
  const double wall = Seconds(CLOCK_MONOTONIC) - began;
  target.Exit(0);
  int code = 0;
  rusage usage = {};
  if (wait4(pid, &code, 0, &usage) != pid || code != 0)
    return std::fprintf(stderr, "the collector failed\n"), 1;
  const auto time = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  const double cpu = time(usage.ru_utime) + time(usage.ru_stime);
  std::printf(
      "{\"rate\": %.0f, \"seconds\": %.1f, \"cpu_seconds\": %.3f, \"share\": %.4f, "
      "\"memory\": %ld}\n",
      static_cast<double>(training.events()) / wall, wall, cpu, cpu / wall, usage.ru_maxrss << 10);
  return 0;
}

int Main(int argc, char** argv) {
  const auto number = [&](int n) { return std::strtoull(argv[n], nullptr, 10); };
  if (argc == 5 && std::strcmp(argv[1], "week") == 0) return Week(number(2), argv[3], argv[4]);
  if (argc == 5 && std::strcmp(argv[1], "cost") == 0) return Cost(number(2), number(3), argv[4]);
  std::fprintf(stderr,
               "usage: long_run week EVENTS MAX_SIZE DIRECTORY\n"
               "       long_run cost RATE SECONDS COLLECTOR\n");
  return 2;
}

}  // namespace
}  // namespace gmt::collector

int main(int argc, char** argv) { return gmt::collector::Main(argc, argv); }
