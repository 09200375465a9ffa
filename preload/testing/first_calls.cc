// Many threads make the process's first GPU calls at once.  usage: first_calls THREADS CALLS
// Nothing is freed; sizes are THREAD * 1000003 + CALL.

#include <cstdlib>
#include <thread>
#include <vector>

#include "preload/testing/runtime.h"

int main(int, char** argv) {
  const int threads = std::atoi(argv[1]), calls = std::atoi(argv[2]);
  std::vector<std::thread> running;
  for (int t = 1; t <= threads; ++t) {
    running.emplace_back([t, calls] {
      for (int i = 0; i < calls; ++i) {
        void* ptr;
        cudaMalloc(&ptr, static_cast<size_t>(t) * 1000003 + static_cast<size_t>(i));
      }
    });
  }
  for (std::thread& thread : running) thread.join();
}
