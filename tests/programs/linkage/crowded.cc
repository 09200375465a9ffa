// A program whose threads continuously open, use and close libraries and call the GPU while the
// profiler's library is loaded (starter.cc). The threads' calls are not printed; the log of the
// simulated device has them.
//
// Usage: crowded SECONDS PLUGIN...
// Each PLUGIN is a separate file (RunPlugin of plugin.cc), which one thread opens again and again.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/programs/linkage/call_sequences.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::atomic<bool> over{false};
  std::atomic<int> failed{0}, rounds{0};
  std::vector<std::thread> threads;
  for (int i = 2; i < argc; ++i) {
    threads.emplace_back([&, path = argv[i]] {
      while (!over.load()) {
        void* plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        auto run = plugin == nullptr
                       ? nullptr
                       : reinterpret_cast<void (*)(TruthLog*)>(dlsym(plugin, "RunPlugin"));
        if (run == nullptr) {
          ++failed;
          return;
        }
        TruthLog truth;
        run(&truth);
        ++rounds;
        if (dlclose(plugin) != 0) ++failed;
      }
    });
  }
  while (rounds.load() == 0 && failed.load() == 0) std::this_thread::yield();
  Moment();
  std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(argv[1])));
  over.store(true);
  for (std::thread& thread : threads) thread.join();
  TruthLog truth;
  truth.Check(failed.load() == 0, "every plugin was opened and closed");
  return truth.Finish();
}
