// The GPU calls of all programs here, which can be counted in a recording.
//
// If GMT_FAULT_ATTACH is set to a directory, a client attaches to the process while it runs
// (attached.py). Before its first allocation the process creates a link there, named after its
// pid, and makes calls that hold no memory until the link is removed. Then it allocates and frees
// for a while, so that the fault occurs in the middle of a recording with several parts.
//
// Everything is static: a variable of an inline function would keep a module loaded forever.
#ifndef TESTS_E2E_FAULTS_USE_GPU_H_
#define TESTS_E2E_FAULTS_USE_GPU_H_

#include <cuda_runtime_api.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

// Makes `count` allocations and frees all but the last. Exits with 99 if a call fails.
static inline void Allocate(int count) {
  for (int i = 0; i < count; ++i) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, 10007 + i) != cudaSuccess) std::_Exit(99);
    if (i + 1 < count && cudaFree(memory) != cudaSuccess) std::_Exit(99);
  }
}

// Not a cancellation point.
static inline void Rest() {
  const timespec moment = {0, 10000000};
  syscall(SYS_nanosleep, &moment, nullptr);
}

// Returns false if the process cannot access the directory; no client attaches then.
static inline bool AwaitAttach(const char* folder) {
  char path[256];
  std::snprintf(path, sizeof path, "%s/%d", folder, getpid());
  void* memory = nullptr;  // creates the session before the attach is requested
  if (cudaMalloc(&memory, 4096) == cudaSuccess && cudaFree(memory) != cudaSuccess) std::_Exit(99);
  if (symlink("wanted", path) != 0) return false;
  size_t unused_bytes, all_bytes;
  struct stat link;
  while (lstat(path, &link) == 0) {
    (void)cudaMemGetInfo(&unused_bytes, &all_bytes);
    Rest();
  }
  return true;
}

// Makes 600 allocations, all freed (attached.py: CHURN).
static inline void Churn() {
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 20; ++k) {
      void* memory = nullptr;
      if (cudaMalloc(&memory, 4096) != cudaSuccess || cudaFree(memory) != cudaSuccess)
        std::_Exit(99);
    }
    Rest();
  }
}

static inline void UseGpu(int count) {
  static pid_t asked = 0;  // a child makes its own request
  const char* folder = std::getenv("GMT_FAULT_ATTACH");
  if (folder != nullptr && asked != getpid()) {
    asked = getpid();
    if (AwaitAttach(folder)) Churn();
  }
  Allocate(count);
}

#endif  // TESTS_E2E_FAULTS_USE_GPU_H_
