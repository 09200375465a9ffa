// Measures the cost of a single cudaMalloc and a single cudaFree for scripts/bench: batches of 64
// calls of one kind below a stack of known depth, on one thread or several. clock_gettime in the
// same process is the reference on each machine. Also built as a library, which Python calls.
//
// Usage: call_cost BATCHES FRAMES THREADS [streams]
//   FRAMES   native frames of the stack at the calls, as backtrace() counts them; threads other
//            than the main one have slightly fewer, because they begin with fewer
//   streams  measures cudaEventRecord and cudaStreamSynchronize instead
// Prints one JSON line: percentiles over batches of nanoseconds per call, and the process's memory
// at the end in KiB: anonymous memory, and the blocks of its session below $GPUMEMTRACE_DIR.
#include <execinfo.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

extern "C" int cudaMalloc(void** pointer, size_t size);
extern "C" int cudaFree(void* pointer);
extern "C" int cudaEventCreateWithFlags(void** event, unsigned int flags);
extern "C" int cudaEventRecord(void* event, void* stream);
extern "C" int cudaStreamSynchronize(void* stream);

namespace {

constexpr int kBatch = 64;
constexpr int kWarmUp = 100;  // batches: context, session, caches

double NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

bool streams = false;

struct Costs {
  std::vector<double> first, second, clock;  // nanoseconds per call, by batch
};

// Returns the one event that all threads record, like a program that reuses its events.
void* Event() {
  static void* const event = [] {
    constexpr unsigned int kDisableTiming = 2;
    void* made = nullptr;
    return cudaEventCreateWithFlags(&made, kDisableTiming) == 0 ? made : nullptr;
  }();
  return event;
}

bool First(void** pointer) {
  return (streams ? cudaEventRecord(Event(), nullptr) : cudaMalloc(pointer, 4096)) == 0;
}
bool Second(void* pointer) {
  return (streams ? cudaStreamSynchronize(nullptr) : cudaFree(pointer)) == 0;
}

void Measure(int batches, Costs* costs) {
  void* pointers[kBatch] = {};
  bool ok = !streams || cudaMalloc(pointers, 4096) == 0;  // begins the recording
  for (int n = 0; n < batches; ++n) {
    const double start = NowNs();
    for (void*& pointer : pointers) ok &= First(&pointer);
    const double between = NowNs();
    for (void* pointer : pointers) ok &= Second(pointer);
    const double done = NowNs();
    for (int call = 0; call < kBatch; ++call) NowNs();
    const double end = NowNs();
    if (!ok) {
      std::fprintf(stderr, "call_cost: a CUDA call failed\n");
      std::exit(1);
    }
    if (n < kWarmUp) continue;
    costs->first.push_back((between - start) / kBatch);
    costs->second.push_back((done - between) / kBatch);
    costs->clock.push_back((end - done) / kBatch);
  }
}

// Adds one frame per level. The volatile read after the call prevents a tail call.
__attribute__((noinline)) int Below(int levels, int batches, Costs* costs) {
  if (levels == 0) {
    Measure(batches, costs);
    return 0;
  }
  volatile int level = Below(levels - 1, batches, costs);
  return level + 1;
}

// Returns the number of levels that, with the caller's frames, Measure() and the innermost Below(),
// add up to `frames`.
__attribute__((noinline)) int LevelsFor(int frames) {
  void* here[512];
  return std::max(0, frames - (backtrace(here, 512) - 1) - 2);
}

void Print(const char* name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
  };
  std::printf("\"%s\": {\"p50\": %.2f, \"p90\": %.2f, \"p99\": %.2f}, ", name, at(0.5), at(0.9),
              at(0.99));
}

uint64_t AnonymousKib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.rfind("Anonymous:", 0) == 0) return std::strtoull(line.c_str() + 10, nullptr, 10);
  }
  return 0;
}

// Returns the size of this process's session. A session is named after its process.
uint64_t SessionKib() {
  const char* folder = std::getenv("GPUMEMTRACE_DIR");
  if (folder == nullptr) return 0;
  const std::string pid = std::to_string(getpid()) + "-";
  uint64_t blocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat info;
    if (entry.path().filename().string().rfind(pid, 0) != 0) continue;
    if (stat(entry.path().c_str(), &info) == 0) blocks += static_cast<uint64_t>(info.st_blocks);
  }
  return blocks / 2;
}

}  // namespace

extern "C" int call_cost(int batches, int frames, int threads_wanted) {
  const int levels = LevelsFor(frames);
  batches += kWarmUp;
  std::vector<Costs> costs(static_cast<size_t>(std::max(1, threads_wanted)));
  std::vector<std::thread> threads;
  for (size_t n = 1; n < costs.size(); ++n) {
    threads.emplace_back([&, n] { Below(levels, batches, &costs[n]); });
  }
  Below(levels, batches, &costs[0]);
  for (std::thread& thread : threads) thread.join();
  Costs all;
  for (const Costs& one : costs) {
    all.first.insert(all.first.end(), one.first.begin(), one.first.end());
    all.second.insert(all.second.end(), one.second.begin(), one.second.end());
    all.clock.insert(all.clock.end(), one.clock.begin(), one.clock.end());
  }
  std::printf("{");
  Print(streams ? "record" : "allocate", all.first);
  Print(streams ? "synchronize" : "free", all.second);
  Print("clock", all.clock);
  std::printf("\"anonymous_kib\": %llu, \"session_kib\": %llu}\n",
              static_cast<unsigned long long>(AnonymousKib()),
              static_cast<unsigned long long>(SessionKib()));
  return std::fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) return 2;
  streams = argc == 5 && std::string(argv[4]) == "streams";
  return call_cost(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));
}
