// What every program here does with the GPU: something that can be counted in a recording.
//
// Where GMT_FAULT_ATTACH names a folder the process is one that somebody attaches to while it runs
// (attached.py): before its first allocation it leaves a link with its pid there, and makes calls that
// hold no memory until that is gone. Then it allocates and frees for a while, so that what is to
// happen to it happens in the middle of a recording that has several parts.
//
// All of it is static: a variable of an inline function would keep a module loaded for ever.
#ifndef TESTS_E2E_FAULTS_USE_GPU_H_
#define TESTS_E2E_FAULTS_USE_GPU_H_

#include <cuda_runtime_api.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

// `count` allocations, all but the last of them freed. Ends the process (99) where one fails.
static inline void Allocate(int count) {
  for (int i = 0; i < count; ++i) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, 10007 + i) != cudaSuccess) std::_Exit(99);
    if (i + 1 < count && cudaFree(memory) != cudaSuccess) std::_Exit(99);
  }
}

// Not a place where a thread is cancelled.
static inline void Rest() {
  const timespec moment = {0, 10000000};
  syscall(SYS_nanosleep, &moment, nullptr);
}

// Nothing where nobody can see the folder: then nobody attaches.
static inline bool AwaitAttach(const char* folder) {
  char path[256];
  std::snprintf(path, sizeof path, "%s/%d", folder, getpid());
  void* memory = nullptr;  // the session is there before who attaches is asked
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

// 600 allocations, all freed (attached.py: CHURN).
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
  static pid_t asked = 0;  // a child asks for itself
  const char* folder = std::getenv("GMT_FAULT_ATTACH");
  if (folder != nullptr && asked != getpid()) {
    asked = getpid();
    if (AwaitAttach(folder)) Churn();
  }
  Allocate(count);
}

#endif  // TESTS_E2E_FAULTS_USE_GPU_H_
