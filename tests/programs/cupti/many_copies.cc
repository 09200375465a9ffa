// Threads that make copies: more records than a CUPTI buffer holds, and with a high THREADS more
// threads than there are buffers. Each record must arrive or be counted as missing.
//
// Usage: many_copies THREADS COPIES
#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::atomic<int> failures{0};

void Check(int result) {
  if (result != 0) ++failures;
}

// A barrier that keeps all threads alive until the last has copied, because buffers of ended
// threads are reused.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--missing_ == 0) all_.notify_all();
    all_.wait(lock, [this] { return missing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int missing_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int thread_count = std::atoi(argv[1]), copies = std::atoi(argv[2]);
  void* memory;
  Check(cudaMalloc(&memory, 1 << 20));
  Meeting meeting(thread_count);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&] {
      char host[64] = {};
      for (int i = 0; i < copies; ++i)
        Check(cudaMemcpy(memory, host, sizeof(host), cudaMemcpyHostToDevice));
      meeting.Wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  Check(cudaFree(memory));
  return failures == 0 ? 0 : 1;
}
