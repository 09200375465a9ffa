/* A program with its own allocator linked in, as jemalloc and tcmalloc are linked into servers. It is
 * nearly always inside malloc and holds its lock. With "sleeper" a second thread waits forever.
 * Prints "ready", and then a dot for every thousand allocations.
 * With -DALIASED, malloc is an alias of the allocator's own functions.
 *
 *   own_allocator [sleeper]
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char heap[1 << 26];
static size_t used;
static volatile unsigned long sink;

void* malloc(size_t size);

#ifdef ALIASED
#define malloc_of_its_own tc_malloc
void* malloc(size_t size) __attribute__((alias("tc_malloc")));
void* mi_malloc(size_t size) __attribute__((alias("tc_malloc")));
void* __interceptor_malloc(size_t size) __attribute__((alias("tc_malloc")));
#else
#define malloc_of_its_own malloc
#endif

void* malloc_of_its_own(size_t size) {
  pthread_mutex_lock(&lock);
  const size_t at = used;
  used += (size + 31) & ~15ul;
  if (used > sizeof(heap) - (1 << 20)) used = 0;
  for (int i = 0; i < 100000; ++i) sink += (unsigned long)i; /* a search for room */
  memcpy(heap + at, &size, sizeof(size));
  pthread_mutex_unlock(&lock);
  return heap + at + 16;
}

void free(void* block) { (void)block; }

void* calloc(size_t count, size_t size) {
  void* block = malloc(count * size);
  memset(block, 0, count * size);
  return block;
}

void* realloc(void* block, size_t size) {
  void* larger = malloc(size);
  size_t old = 0;
  if (block != NULL) memcpy(&old, (char*)block - 16, sizeof(old));
  if (block != NULL) memcpy(larger, block, old < size ? old : size);
  return larger;
}

static void* sleep_on(void* argument) {
  for (;;) pause();
  return argument;
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc > 1 && strcmp(argv[1], "sleeper") == 0) pthread_create(&thread, NULL, sleep_on, NULL);
  if (write(1, "ready\n", 6) != 6) return 1;
  for (unsigned long n = 1;; ++n) {
    sink += (unsigned long)malloc(100);
    if (n % 1000 == 0 && write(1, ".\n", 2) != 2) return 1;
  }
}
