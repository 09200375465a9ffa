// Allocates in a signal handler at regular intervals, at arbitrary points of the program, including
// those at which the interpreter has a partly built frame. Linked with a runtime that takes no
// lock.
#include <cuda_runtime_api.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include <atomic>

namespace {

std::atomic<unsigned long> allocations{0};

void Allocate(int) {
  void* pointer = nullptr;
  if (cudaMalloc(&pointer, 4096) == cudaSuccess) ++allocations;
}

void SetTimer(long microseconds) {
  itimerval every;
  memset(&every, 0, sizeof(every));
  every.it_interval.tv_usec = every.it_value.tv_usec = microseconds;
  setitimer(ITIMER_REAL, &every, nullptr);
}

}  // namespace

// Allocates once before the first signal, because the first allocation of a process creates the
// session, which a signal handler must not do.
extern "C" void Start(long microseconds) {
  void* pointer = nullptr;
  cudaMalloc(&pointer, 512);
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = Allocate;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  SetTimer(microseconds);
}

extern "C" unsigned long Allocations() { return allocations; }

extern "C" void Stop() { SetTimer(0); }
