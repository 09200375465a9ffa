/* Allocates and frees until its input ends, and keeps every tenth block. With a number of children,
 * these do so and it waits for them, like a launcher. With "idle" it makes no call after the first;
 * with "locked" all its present and future memory is locked; with "kinds" it allocates memory of
 * every kind: arrays, pinned, managed, from a pool, mapped explicitly, from a graph, from another
 * process. With "workers" it forks two processes that use no GPU, like data loaders, after it has
 * used the GPU. With "passing" it keeps no block. With "forks" it forks a process at SIGUSR1 that
 * continues with the same calls, whatever they return. With "execs" it makes no call after the first
 * and, at SIGUSR1, executes itself without that word.
 *
 *   gpu_loop [CHILDREN|idle|locked|kinds|workers|passing|forks|execs]
 */

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nothing is ever written to the input; it can only end. */
static int has_ended(int patience_ms) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, patience_ms) > 0;
}

/* Driver functions, called through addresses looked up at the start. */
static struct {
  CUresult (*reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
  CUresult (*unreserve)(CUdeviceptr, size_t);
  CUresult (*create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                     unsigned long long);
  CUresult (*release)(CUmemGenericAllocationHandle);
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*unmap)(CUdeviceptr, size_t);
} driver;

static int find(const char* name, void* place) {
  enum cudaDriverEntryPointQueryResult found;
  return cudaGetDriverEntryPointByVersion(name, (void**)place, CUDART_VERSION, cudaEnableDefault,
                                          &found) == cudaSuccess &&
         found == cudaDriverEntryPointSuccess;
}

static int find_driver(void) {
  return find("cuMemAddressReserve", &driver.reserve) &&
         find("cuMemAddressFree", &driver.unreserve) && find("cuMemCreate", &driver.create) &&
         find("cuMemRelease", &driver.release) && find("cuMemMap", &driver.map) &&
         find("cuMemUnmap", &driver.unmap);
}

static int of_runtimes_kinds(void) {
  const struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  const struct cudaExtent extent = {64, 64, 0};
  cudaArray_t array;
  cudaMipmappedArray_t levels;
  void *pinned, *managed, *pooled;
  return cudaMallocArray(&array, &floats, 64, 64, 0) == cudaSuccess &&
         cudaFreeArray(array) == cudaSuccess &&
         cudaMallocMipmappedArray(&levels, &floats, extent, 3, 0) == cudaSuccess &&
         cudaFreeMipmappedArray(levels) == cudaSuccess &&
         cudaMallocHost(&pinned, 8192) == cudaSuccess && cudaFreeHost(pinned) == cudaSuccess &&
         cudaMallocManaged(&managed, 8192, cudaMemAttachGlobal) == cudaSuccess &&
         cudaFree(managed) == cudaSuccess && cudaMallocAsync(&pooled, 8192, 0) == cudaSuccess &&
         cudaFreeAsync(pooled, 0) == cudaSuccess;
}

/* A graph that is never launched: its nodes contain the addresses that they would use. */
static int of_graphs(void) {
  struct cudaMemAllocNodeParams memory = {
      .poolProps = {.allocType = cudaMemAllocationTypePinned,
                    .location = {.type = cudaMemLocationTypeDevice}},
      .bytesize = 90001};
  cudaGraph_t graph;
  cudaGraphNode_t taken, given;
  return cudaGraphCreate(&graph, 0) == cudaSuccess &&
         cudaGraphAddMemAllocNode(&taken, graph, NULL, 0, &memory) == cudaSuccess &&
         cudaGraphAddMemFreeNode(&given, graph, &taken, 1, memory.dptr) == cudaSuccess &&
         cudaGraphDestroy(graph) == cudaSuccess;
}

static cudaIpcMemHandle_t of_other;

/* Another process, which shares memory until this one ends. */
static int start_other(void) {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 0;
  const pid_t other = fork();
  if (other == 0) {
    void* memory;
    char end;
    close(there[1]);
    if (cudaMalloc(&memory, 3 << 20) != cudaSuccess) _exit(1);
    if (cudaIpcGetMemHandle(&of_other, memory) != cudaSuccess) _exit(1);
    if (write(back[1], &of_other, sizeof(of_other)) != sizeof(of_other)) _exit(1);
    _exit(read(there[0], &end, 1) == 0 ? 0 : 1);
  }
  close(there[0]);
  return other > 0 && read(back[0], &of_other, sizeof(of_other)) == sizeof(of_other);
}

static int of_others(void) {
  void* theirs;
  return cudaIpcOpenMemHandle(&theirs, of_other, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess &&
         cudaIpcCloseMemHandle(theirs) == cudaSuccess;
}

static int of_drivers_kinds(void) {
  const size_t size = 2 << 20;
  const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  CUdeviceptr address;
  CUmemGenericAllocationHandle physical;
  return driver.reserve(&address, size, 0, 0, 0) == CUDA_SUCCESS &&
         driver.create(&physical, size, &properties, 0) == CUDA_SUCCESS &&
         driver.map(address, size, 0, physical, 0) == CUDA_SUCCESS &&
         driver.unmap(address, size) == CUDA_SUCCESS && driver.release(physical) == CUDA_SUCCESS &&
         driver.unreserve(address, size) == CUDA_SUCCESS;
}

static void start_workers(void) {
  for (int i = 0; i < 2; ++i) {
    if (fork() != 0) continue;
    while (!has_ended(-1)) {
    }
    _exit(0);
  }
}

static void exec_at_once(int signal) {
  (void)signal;
  execl("/proc/self/exe", "gpu_loop", (char*)NULL);
  _exit(1);
}

static volatile sig_atomic_t is_to_fork;
static void fork_soon(int signal) { is_to_fork = signal; }

static pid_t forked;

static void fork_one(void) {
  is_to_fork = 0;
  forked = fork();
  if (forked != 0) return;
  printf("child %d\n", (int)getpid());
  fflush(stdout);
  while (!has_ended(2)) {
    void* block;
    if (cudaMalloc(&block, 4096) == cudaSuccess) cudaFree(block);
  }
  _exit(0);
}

static int work(int idle, int kinds, int workers, int passing) {
  void *first, *block, *kept;
  if (kinds && !start_other()) return 1;  // before this one has used the GPU
  if (cudaMalloc(&first, 1 << 20) != cudaSuccess) return 1;
  if (kinds && !find_driver()) return 1;
  if (workers) start_workers();
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  for (long n = 0; !has_ended(2); ++n) {
    if (is_to_fork) fork_one();
    if (idle) continue;
    // libc executes this on every thread, including those that others started.
    if (n % 50 == 0 && setuid(getuid()) != 0) return 1;
    if (kinds && !(of_drivers_kinds() && of_runtimes_kinds() && of_graphs() && of_others())) return 1;
    if (cudaMalloc(&block, 4096) != cudaSuccess) return 1;
    if (n % 10 == 0 && !passing && cudaMalloc(&kept, 8192) != cudaSuccess) return 1;
    if (cudaFree(block) != cudaSuccess) return 1;
  }
  if (forked > 0) waitpid(forked, NULL, 0);
  printf("ok\n");
  return 0;
}

int main(int argc, char** argv) {
  const int execs = argc > 1 && strcmp(argv[1], "execs") == 0;
  const int idle = execs || (argc > 1 && strcmp(argv[1], "idle") == 0);
  const int locked = argc > 1 && strcmp(argv[1], "locked") == 0;
  if (locked && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 2;
  const int kinds = argc > 1 && strcmp(argv[1], "kinds") == 0;
  const int workers = argc > 1 && strcmp(argv[1], "workers") == 0;
  const int passing = argc > 1 && strcmp(argv[1], "passing") == 0;
  const int forks = argc > 1 && strcmp(argv[1], "forks") == 0;
  if (forks) signal(SIGUSR1, fork_soon);
  if (execs) signal(SIGUSR1, exec_at_once);
  const int is_way = idle || locked || kinds || workers || passing || forks;
  const int children = argc > 1 && !is_way ? atoi(argv[1]) : 0;
  for (int i = 0; i < children; ++i) {
    if (fork() == 0) {
      char rank[16];
      snprintf(rank, sizeof(rank), "%d", i);
      setenv("RANK", rank, 1);
      execl("/proc/self/exe", argv[0], (char*)NULL);
      _exit(1);
    }
  }
  if (children == 0) return work(idle, kinds, workers, passing);
  while (wait(NULL) > 0) {
  }
  return 0;
}
