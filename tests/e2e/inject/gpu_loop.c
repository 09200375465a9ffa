/* Allocates and frees for so many seconds: every tenth block is kept. With a number of children, they do
 * and it waits for them, as a launcher does. With "idle" it makes no call after the first.
 *
 *   gpu_loop SECONDS [CHILDREN|idle]
 */

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int work(double seconds, int idle) {
  void *first, *block, *kept;
  if (cudaMalloc(&first, 1 << 20) != cudaSuccess) return 1;
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  const double end = now() + seconds;
  for (long n = 0; now() < end; ++n) {
    usleep(2000);
    if (idle) continue;
    if (cudaMalloc(&block, 4096) != cudaSuccess) return 1;
    if (n % 10 == 0 && cudaMalloc(&kept, 8192) != cudaSuccess) return 1;
    if (cudaFree(block) != cudaSuccess) return 1;
  }
  printf("ok\n");
  return 0;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  const int idle = argc > 2 && strcmp(argv[2], "idle") == 0;
  const int children = argc > 2 && !idle ? atoi(argv[2]) : 0;
  for (int i = 0; i < children; ++i) {
    if (fork() == 0) {
      char rank[16];
      snprintf(rank, sizeof(rank), "%d", i);
      setenv("RANK", rank, 1);
      execl("/proc/self/exe", argv[0], argv[1], (char*)NULL);
      _exit(1);
    }
  }
  if (children == 0) return work(seconds, idle);
  while (wait(NULL) > 0) {
  }
  return 0;
}
