// Allocates and frees on several threads, with sizes that no two allocations of a run share, so
// that a recording can be checked allocation by allocation.
//
// Exercises: cudaMalloc and cudaFree from many threads at once, addresses that go from one thread
// to another, frees by a thread that did not allocate (--handover), stream-ordered and pinned
// memory (--async, --host), memory still live at exit (--leak).
//
// Usage: driver_alloc [--threads N] [--count N] [--live N] [--leak N] [--pause US]
//                     [--handover] [--async] [--host]
//   --count  allocations per thread      --live  maximum of live allocations per thread
//   --pause  microseconds after each allocation
// Prints one JSON line with its totals. Exits with 1 if a CUDA call failed.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Options {
  int threads = 4;
  int count = 100;
  int live = 8;
  int leak = 0;
  int pause = 0;
  bool handover = false;
  bool async = false;
  bool host = false;
};

std::atomic<uint64_t> allocated{0}, freed{0}, bytes{0}, failures{0};

// Distinct for every (thread, index) and never a multiple of 512: 1 KiB steps plus an odd offset.
size_t SizeOf(const Options& options, int thread, int index) {
  return (static_cast<size_t>(index) * options.threads + thread + 1) * 1024 + 7;
}

void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  if (failures++ == 0) std::fprintf(stderr, "driver_alloc: %s\n", cudaGetErrorString(error));
}

void* Allocate(const Options& options, size_t size) {
  void* pointer = nullptr;
  if (options.async) {
    Check(cudaMallocAsync(&pointer, size, nullptr));
  } else if (options.host) {
    Check(cudaHostAlloc(&pointer, size, cudaHostAllocDefault));
  } else {
    Check(cudaMalloc(&pointer, size));
  }
  if (pointer != nullptr) {
    ++allocated;
    bytes += size;
  }
  return pointer;
}

void Free(const Options& options, void* pointer) {
  if (options.async) {
    Check(cudaFreeAsync(pointer, nullptr));
  } else if (options.host) {
    Check(cudaFreeHost(pointer));
  } else {
    Check(cudaFree(pointer));
  }
  ++freed;
}

// Passes memory from the thread that allocated it to one that frees it.
class Exchange {
 public:
  void Put(void* pointer) {
    std::lock_guard<std::mutex> lock(mutex_);
    pointers_.push_back(pointer);
  }
  void* Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (pointers_.empty()) return nullptr;
    void* pointer = pointers_.front();
    pointers_.pop_front();
    return pointer;
  }

 private:
  std::mutex mutex_;
  std::deque<void*> pointers_;
};

void Work(const Options& options, int thread, Exchange& exchange) {
  std::deque<void*> live;
  for (int index = 0; index < options.count; ++index) {
    void* pointer = Allocate(options, SizeOf(options, thread, index));
    if (pointer != nullptr) live.push_back(pointer);
    if (options.pause > 0) usleep(static_cast<useconds_t>(options.pause));
    if (live.size() <= static_cast<size_t>(options.live)) continue;
    void* oldest = live.front();
    live.pop_front();
    if (options.handover) {
      exchange.Put(oldest);
      oldest = exchange.Take();
    }
    if (oldest != nullptr) Free(options, oldest);
  }
  while (live.size() > static_cast<size_t>(options.leak)) {
    Free(options, live.front());
    live.pop_front();
  }
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    auto number = [&](const char* name, int* value) {
      if (std::strcmp(argv[i], name) != 0 || i + 1 >= argc) return false;
      *value = std::atoi(argv[++i]);
      return true;
    };
    auto flag = [&](const char* name, bool* value) {
      if (std::strcmp(argv[i], name) != 0) return false;
      return *value = true;
    };
    if (!number("--threads", &options->threads) && !number("--count", &options->count) &&
        !number("--live", &options->live) && !number("--leak", &options->leak) &&
        !number("--pause", &options->pause) && !flag("--handover", &options->handover) &&
        !flag("--async", &options->async) && !flag("--host", &options->host)) {
      std::fprintf(stderr, "driver_alloc: unknown argument %s\n", argv[i]);
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) return 2;
  Exchange exchange;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < options.threads; ++thread) {
    threads.emplace_back([&options, thread, &exchange] { Work(options, thread, exchange); });
  }
  for (std::thread& thread : threads) thread.join();
  while (void* pointer = exchange.Take()) Free(options, pointer);
  std::printf("{\"allocated\": %llu, \"freed\": %llu, \"bytes\": %llu, \"failures\": %llu}\n",
              static_cast<unsigned long long>(allocated), static_cast<unsigned long long>(freed),
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(failures));
  return failures == 0 ? 0 : 1;
}
