// Runs threads that continuously allocate and free device memory. Executes commands from standard
// input, one per line. For tests that attach to a process under load and check the recording.
//
//   pause   stops every thread between two calls; prints "live N", then for each of the N live
//           allocations "ADDRESS SIZE BEFORE AFTER": CLOCK_MONOTONIC around the call, in ns
//   poke    allocates and frees 4096 bytes in the main thread; prints "poked"
//   go      lets the threads continue; prints "going"
//   slow N  lets the threads sleep N microseconds after each call from now on; prints "slow"
//   attach FILE  opens that library and calls its gpumemtrace_attach; prints "attached CODE", then
//           its text with line ends replaced by blanks
//   slot    prints "slot NAME": the library that a call of cudaMalloc reaches
//   fork    allocates in a child process that then exits; prints "child CODE"
// Prints "ready PID" after its first allocation. The program exits at the end of the input.
//
// Usage: attach_load [--threads N] [--seed N]
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMaxHeld = 40;  // allocations per thread

struct Held {
  void* address;
  size_t size;
  uint64_t before, after;
};

uint64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

std::shared_mutex paused;  // held shared by a thread while it makes a call
std::atomic<bool> waiting{false}, ended{false};
std::atomic<int> rest_us{0};
std::atomic<int> failures{0};

class Worker {
 public:
  explicit Worker(unsigned seed) : random_(seed) {}

  void Run() {
    while (!ended) {
      // Otherwise a writer that waits for this lock may starve.
      while (waiting && !ended) usleep(200);
      {
        const std::shared_lock<std::shared_mutex> lock(paused);
        Step();
      }
      if (rest_us != 0) usleep(static_cast<useconds_t>(rest_us));
    }
  }
  const std::vector<Held>& held() const { return held_; }

 private:
  void Step() {
    if (held_.empty() || (held_.size() < kMaxHeld && random_() % 2 == 0)) {
      Held one = {nullptr, 256 * (1 + random_() % 4096), NowNs(), 0};
      if (cudaMalloc(&one.address, one.size) != cudaSuccess) {
        ++failures;
        return;
      }
      one.after = NowNs();
      held_.push_back(one);
    } else {
      std::swap(held_[random_() % held_.size()], held_.back());
      if (cudaFree(held_.back().address) != cudaSuccess) ++failures;
      held_.pop_back();
    }
  }

  std::minstd_rand random_;
  std::vector<Held> held_;
};

bool Poke() {
  void* address = nullptr;
  return cudaMalloc(&address, 4096) == cudaSuccess && cudaFree(address) == cudaSuccess;
}

int Fork() {
  const pid_t child = fork();
  if (child == 0) _exit(Poke() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Attach(char* path) {
  path[std::strcspn(path, "\n")] = '\0';
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto* attach = library == nullptr ? nullptr
                                    : reinterpret_cast<int (*)(const char*, char*, size_t)>(
                                          dlsym(library, "gpumemtrace_attach"));
  char text[4096] = "";
  const int code = attach == nullptr ? -2 : attach("stacks=native", text, sizeof(text));
  for (char* c = text; *c != '\0'; ++c) *c = *c == '\n' ? ' ' : *c;
  std::printf("attached %d %s\n", code, text);
}

const char* LibraryOfCalls() {
  Dl_info info;
  void* function =
      reinterpret_cast<void*>(static_cast<cudaError_t (*)(void**, size_t)>(&cudaMalloc));
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "unknown";
  const char* name = std::strrchr(info.dli_fname, '/');
  return name == nullptr ? info.dli_fname : name + 1;
}

void Print(const std::vector<Worker*>& workers) {
  size_t count = 0;
  for (const Worker* worker : workers) count += worker->held().size();
  std::printf("live %zu\n", count);
  for (const Worker* worker : workers) {
    for (const Held& one : worker->held()) {
      std::printf("%llu %zu %llu %llu\n",
                  static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(one.address)),
                  one.size, static_cast<unsigned long long>(one.before),
                  static_cast<unsigned long long>(one.after));
    }
  }
}

void Obey(const std::vector<Worker*>& workers) {
  std::unique_lock<std::shared_mutex> stop(paused, std::defer_lock);
  char line[4096];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    if (std::strncmp(line, "pause", 5) == 0) {
      waiting = true;
      if (!stop.owns_lock()) stop.lock();
      Print(workers);
    } else if (std::strncmp(line, "poke", 4) == 0) {
      if (!Poke()) ++failures;
      std::printf("poked\n");
    } else if (std::strncmp(line, "go", 2) == 0) {
      waiting = false;
      if (stop.owns_lock()) stop.unlock();
      std::printf("going\n");
    } else if (std::strncmp(line, "slow", 4) == 0) {
      rest_us = std::atoi(line + 4);
      std::printf("slow\n");
    } else if (std::strncmp(line, "attach ", 7) == 0) {
      Attach(line + 7);
    } else if (std::strncmp(line, "slot", 4) == 0) {
      std::printf("slot %s\n", LibraryOfCalls());
    } else if (std::strncmp(line, "fork", 4) == 0) {
      std::fflush(stdout);
      std::printf("child %d\n", Fork());
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 4;
  unsigned seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  if (!Poke()) return 1;
  std::vector<Worker*> workers;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    workers.push_back(new Worker(seed + static_cast<unsigned>(i)));
    running.emplace_back([worker = workers.back()] { worker->Run(); });
  }
  std::printf("ready %d\n", getpid());
  std::fflush(stdout);
  Obey(workers);
  ended = true;
  waiting = false;
  for (std::thread& thread : running) thread.join();
  if (failures != 0) std::fprintf(stderr, "attach_load: %d calls failed\n", failures.load());
  return failures == 0 ? 0 : 1;
}
