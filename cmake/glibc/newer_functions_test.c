// Compares the functions with those of this machine's glibc, which has them all. Including the file
// gives them other names here, and hides the real pthread_cond_clockwait from its replacement.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void* (*const real_dlsym)(void*, const char*) = dlsym;

#define arc4random Own_arc4random
#define arc4random_buf Own_arc4random_buf
#define _dl_find_object Own_dl_find_object
#define fstat Own_fstat
#define fstat64 Own_fstat64
#define fstatat Own_fstatat
#define fstatat64 Own_fstatat64
#define lstat Own_lstat
#define lstat64 Own_lstat64
#define gettid Own_gettid
#define __libc_single_threaded Own_single_threaded
#define pthread_cond_clockwait Own_clockwait
#define dlsym(library, name) NULL
#include "newer_functions.c"
#include "program_start.c"
#undef dlsym
#undef _dl_find_object
#undef fstat
#undef lstat
#undef gettid

static int failures = 0;
#define EXPECT(condition) \
  ((condition) ? (void)0 : (void)(++failures, printf("%d: %s\n", __LINE__, #condition)))

static int constructed = 0;
__attribute__((constructor)) static void Construct(int argc, char** argv, char** environment) {
  constructed += argc > 0 && argv[0] != NULL && environment == environ;
}

static void TestConstructorsRunOnce(void) { EXPECT(constructed == 1); }

static void TestFoundCodeIsThatOfGlibc(void) {
  int local = 0;
  void* const addresses[] = {(void*)(uintptr_t)TestFoundCodeIsThatOfGlibc,
                             real_dlsym(RTLD_DEFAULT, "qsort"),
                             real_dlsym(RTLD_DEFAULT, "pthread_create"),
                             &failures,
                             &local,
                             NULL};
  for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; ++i) {
    struct dl_find_object real, own;
    const int found = _dl_find_object(addresses[i], &real);
    EXPECT(Own_dl_find_object(addresses[i], &own) == found);
    if (found == 0) EXPECT(own.dlfo_eh_frame == real.dlfo_eh_frame);
  }
}

static void TestFilesAreThoseOfGlibc(void) {
  struct stat real, own;
  EXPECT(lstat("/proc/self/exe", &real) == 0 && Own_lstat("/proc/self/exe", &own) == 0);
  EXPECT(real.st_mode == own.st_mode && S_ISLNK(own.st_mode));
  EXPECT(stat("/proc/self/exe", &own) == 0 && S_ISREG(own.st_mode) && own.st_size > 0);
  EXPECT(fstat(STDIN_FILENO, &real) == 0 && Own_fstat(STDIN_FILENO, &own) == 0);
  EXPECT(real.st_ino == own.st_ino && real.st_mode == own.st_mode);
  EXPECT(stat("/proc/self/no file", &own) == -1 && errno == ENOENT);
}

static void TestThreadIsThatOfGlibc(void) { EXPECT(Own_gettid() == gettid()); }

static void TestRandomBytesFillEveryPart(void) {
  unsigned char bytes[1000] = {0};
  size_t zeros = 0;
  Own_arc4random_buf(bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; ++i) zeros += bytes[i] == 0;
  EXPECT(zeros < 100);  // four are expected; a part that is left out has at least 232
  EXPECT(Own_arc4random() != Own_arc4random() || Own_arc4random() != Own_arc4random());
}

static void TestClockWaitEndsAtItsDeadline(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec deadline, now;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_nsec += 20000000;
  if (deadline.tv_nsec >= 1000000000) deadline.tv_nsec -= 1000000000, ++deadline.tv_sec;
  pthread_mutex_lock(&mutex);
  int result = 0;
  while (result == 0) result = Own_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &deadline);
  clock_gettime(CLOCK_MONOTONIC, &now);
  EXPECT(result == ETIMEDOUT);
  // The two clocks are not read at the same instant, so allow for a difference.
  const int64_t late_ns =
      (now.tv_sec - deadline.tv_sec) * INT64_C(1000000000) + now.tv_nsec - deadline.tv_nsec;
  EXPECT(late_ns > -10000000);
  EXPECT(Own_clockwait(&condition, &mutex, -1, &deadline) == EINVAL);
  pthread_mutex_unlock(&mutex);
}

int main(void) {
  TestConstructorsRunOnce();
  TestFoundCodeIsThatOfGlibc();
  TestFilesAreThoseOfGlibc();
  TestThreadIsThatOfGlibc();
  TestRandomBytesFillEveryPart();
  TestClockWaitEndsAtItsDeadline();
  return failures != 0;
}
