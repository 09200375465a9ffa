/* A process for injection tests. It repeats one kind of work and notices if that goes wrong. Prints
 * "ready", works for SECONDS, prints "ok" and the number of repetitions. No thread only waits,
 * unless waiting is the work. Ends earlier as soon as the first byte of the file named by
 * GMT_TARGET_STOP is not 0.
 *
 *   target malloc|arithmetic|sleep|signals|fork|threads|dlopen|errno|wait|exec|exit SECONDS
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double deadline;
static const volatile char* stop = "";
static volatile long done;

static void fail(const char* what) {
  fprintf(stderr, "target: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int is_over(void) { return *stop != 0 || now() > deadline; }

/* Four threads check that blocks keep what was written into them. */
static void* malloc_loop(void* arg) {
  uint32_t random = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
  enum { kBlocks = 64 };
  unsigned char* blocks[kBlocks] = {0};
  size_t sizes[kBlocks] = {0};
  while (!is_over()) {
    random = random * 1664525u + 1013904223u;
    const unsigned i = (random >> 8) % kBlocks;
    for (size_t b = 0; b < sizes[i]; b += 97) {
      if (blocks[i][b] != (unsigned char)(i + b)) fail("a block has changed");
    }
    free(blocks[i]);
    sizes[i] = (random >> 16) % 20000;
    blocks[i] = malloc(sizes[i] + 1);
    if (blocks[i] == NULL) fail("malloc");
    for (size_t b = 0; b < sizes[i]; b += 97) blocks[i][b] = (unsigned char)(i + b);
    __sync_fetch_and_add(&done, 1);
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  return NULL;
}

/* Integer and floating point arithmetic and flags: the same sum repeatedly. */
static double sum_of(uint64_t seed, uint64_t* hash) {
  double a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  uint64_t h = seed;
  for (int i = 1; i < 20000; ++i) {
    a += b / i, b += c / i, c += d / i, d += e / i, e += f / i, f = a * 0.5;
    h = (h ^ (h >> 13)) * 0x9e3779b97f4a7c15ull + (h > seed ? 1 : 3);
    if (a > 1e6) a = 1, b = 2, c = 3, d = 4, e = 5;
  }
  *hash = h;
  return a + b + c + d + e + f;
}

static void arithmetic(void) {
  uint64_t want_hash, hash;
  const double want = sum_of(7, &want_hash);
  while (!is_over()) {
    const double got = sum_of(7, &hash);
    if (memcmp(&got, &want, sizeof(got)) != 0 || hash != want_hash) fail("another sum");
    ++done;
  }
}

/* Each kind of wait must last long enough and must not report an interruption. */
static void sleeps(void) {
  sem_t never;
  sem_init(&never, 0, 0);
  while (!is_over()) {
    const double begin = now();
    struct timespec short_while = {0, 60000000}, left = {0, 0}, until;
    struct timeval again = {0, 60000};
    if (nanosleep(&short_while, &left) != 0) fail("nanosleep");
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &short_while, &left) != 0) fail("clock_nanosleep");
    if (poll(NULL, 0, 60) != 0) fail("poll");
    if (select(0, NULL, NULL, NULL, &again) != 0) fail("select");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 60000000;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
    if (sem_timedwait(&never, &until) == 0 || errno != ETIMEDOUT) fail("sem_timedwait");
    if (now() - begin < 0.299) fail("slept too short");
    ++done;
  }
}

/* Queued signals from a child: none may be lost. */
static volatile sig_atomic_t seen_signals;
static void count_signal(int signal) {
  (void)signal;
  ++seen_signals;
}

static void signals(void) {
  struct sigaction action = {.sa_handler = count_signal};
  sigaction(SIGRTMIN, &action, NULL);
  int stop[2], count[2];
  if (pipe2(stop, O_NONBLOCK) != 0 || pipe(count) != 0) fail("pipe");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    long sent = 0;
    char end;
    close(stop[1]);
    while (read(stop[0], &end, 1) < 0) {
      const union sigval value = {0};
      if (sigqueue(parent, SIGRTMIN, value) == 0) ++sent;
      usleep(300);
    }
    if (write(count[1], &sent, sizeof(sent)) != sizeof(sent)) _exit(1);
    _exit(0);
  }
  close(stop[0]);
  while (!is_over()) {
    struct timespec short_while = {0, 2000000};
    nanosleep(&short_while, NULL);
    ++done;
  }
  close(stop[1]);
  long sent = -1;
  while (read(count[0], &sent, sizeof(sent)) < 0 && errno == EINTR) {
  }
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
  }
  if (sent != seen_signals) fail("a signal was lost");
}

static void forks(void) {
  while (!is_over()) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
      free(malloc(1000));
      _exit(17);
    }
    int status;
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    if (WEXITSTATUS(status) != 17) fail("a child went wrong");
    ++done;
  }
}

static void* short_thread(void* arg) {
  free(malloc(100));
  return arg;
}

static void threads(void) {
  while (!is_over()) {
    pthread_t thread[4];
    for (int i = 0; i < 4; ++i) {
      if (pthread_create(&thread[i], NULL, short_thread, &thread[i]) != 0) fail("pthread_create");
    }
    for (int i = 0; i < 4; ++i) {
      void* result;
      if (pthread_join(thread[i], &result) != 0 || result != &thread[i]) fail("pthread_join");
    }
    ++done;
  }
}

static void dlopens(void) {
  while (!is_over()) {
    void* library = dlopen("libm.so.6", RTLD_NOW);
    void* other = dlopen("libresolv.so.2", RTLD_NOW);
    if (library == NULL || dlsym(library, "cos") == NULL) fail("dlopen");
    if (dlsym(library, "no_such_function") != NULL || dlerror() == NULL) fail("dlerror");
    dlclose(library);
    if (other != NULL) dlclose(other);
    ++done;
  }
}

/* Checks errno some time after the call that set it. */
static void errnos(void) {
  while (!is_over()) {
    if (read(-1, NULL, 0) != -1) fail("read");
    for (volatile int i = 0; i < 20000; ++i) {
    }
    if (errno != EBADF) fail("another errno");
    ++done;
  }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose;
static void* take_turns(void* arg) {
  const int me = (int)(intptr_t)arg;
  while (!is_over()) {
    pthread_mutex_lock(&mutex);
    while (whose != me && !is_over()) pthread_cond_wait(&turn, &mutex);
    whose = 1 - me;
    ++done;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&turn);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void execs(char** argv) {
  if (is_over()) return;
  usleep(1000);
  char until[32], count[32];
  snprintf(until, sizeof(until), "%.6f", deadline);
  snprintf(count, sizeof(count), "%ld", done + 1);
  execl("/proc/self/exe", argv[0], "exec", "0", until, count, (char*)NULL);
  fail("exec");
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* stop_file = getenv("GMT_TARGET_STOP");
  if (stop_file != NULL) {
    const int fd = open(stop_file, O_RDONLY);
    void* byte = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    if (byte == MAP_FAILED) fail("mmap");
    stop = byte;
    close(fd);
  }
  const int is_next = argc > 4; /* in a series of programs that exec each other */
  if (!is_next) printf("ready\n"), fflush(stdout);
  deadline = is_next ? atof(argv[3]) : now() + (argc > 2 ? atof(argv[2]) : 1);
  done = is_next ? atol(argv[4]) : 0;
  if (strcmp(what, "malloc") == 0) {
    pthread_t thread[4];
    for (uintptr_t i = 0; i < 4; ++i) pthread_create(&thread[i], NULL, malloc_loop, (void*)i);
    for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
  } else if (strcmp(what, "wait") == 0) {
    pthread_t other;
    pthread_create(&other, NULL, take_turns, (void*)1);
    take_turns(NULL);
    pthread_join(other, NULL);
  } else if (strcmp(what, "arithmetic") == 0) {
    arithmetic();
  } else if (strcmp(what, "sleep") == 0) {
    sleeps();
  } else if (strcmp(what, "signals") == 0) {
    signals();
  } else if (strcmp(what, "fork") == 0) {
    forks();
  } else if (strcmp(what, "threads") == 0) {
    threads();
  } else if (strcmp(what, "dlopen") == 0) {
    dlopens();
  } else if (strcmp(what, "errno") == 0) {
    errnos();
  } else if (strcmp(what, "exec") == 0) {
    execs(argv);
  } else if (strcmp(what, "exit") == 0) {
    while (!is_over()) free(malloc(100));
  } else {
    fprintf(stderr, "target: unknown work '%s'\n", what);
    return 2;
  }
  printf("ok %ld\n", done);
  return 0;
}
