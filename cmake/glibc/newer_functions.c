// What programs reference of glibc that releases since 2.28 have added. With these definitions they
// run on glibc 2.28. Most references come from libstdc++ and libgcc, which are linked statically.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// ---- 2.36 --------------------------------------------------------------------------------------

uint32_t arc4random(void);
void arc4random_buf(void* buffer, size_t size);

void arc4random_buf(void* buffer, size_t size) {
  unsigned char* bytes = buffer;
  // getentropy returns at most 256 bytes per call.
  while (size > 0) {
    const size_t part = size < 256 ? size : 256;
    if (getentropy(bytes, part) != 0) abort();
    bytes += part;
    size -= part;
  }
}

uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof value);
  return value;
}

// ---- 2.35 --------------------------------------------------------------------------------------

struct SearchedCode {
  ElfW(Addr) address;
  struct dl_find_object* result;
};

static int FindCode(struct dl_phdr_info* module, size_t size, void* argument) {
  (void)size;
  struct SearchedCode* searched = argument;
  ElfW(Addr) first = 0, last = 0, unwind_table = 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &module->dlpi_phdr[i];
    const ElfW(Addr) start = module->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_EH_FRAME) unwind_table = start;
    if (segment->p_type == PT_LOAD && searched->address - start < segment->p_memsz) {
      first = start;
      last = start + segment->p_memsz;
    }
  }
  if (last == 0) return 0;
  if (unwind_table == 0) return -1;
  memset(searched->result, 0, sizeof *searched->result);
  searched->result->dlfo_map_start = (void*)first;
  searched->result->dlfo_map_end = (void*)last;
  searched->result->dlfo_eh_frame = (void*)unwind_table;
  return 1;
}

// Only libgcc calls it, to unwind exceptions; it does not use dlfo_link_map.
int _dl_find_object(void* address, struct dl_find_object* result) {
  struct SearchedCode searched = {(ElfW(Addr))address, result};
  return dl_iterate_phdr(FindCode, &searched) == 1 ? 0 : -1;
}

// ---- 2.33: until then these were inline functions ----------------------------------------------

int fstatat(int folder, const char* path, struct stat* result, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, result, flags);
}
int fstat(int file, struct stat* result) { return (int)syscall(SYS_fstat, file, result); }
int stat(const char* path, struct stat* result) { return fstatat(AT_FDCWD, path, result, 0); }
int lstat(const char* path, struct stat* result) {
  return fstatat(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}

// With 64-bit addresses both structures are equal.
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat and stat64 differ");
int fstat64(int file, struct stat64* result) { return fstat(file, (struct stat*)result); }
int stat64(const char* path, struct stat64* result) { return stat(path, (struct stat*)result); }
int lstat64(const char* path, struct stat64* result) { return lstat(path, (struct stat*)result); }
int fstatat64(int folder, const char* path, struct stat64* result, int flags) {
  return fstatat(folder, path, (struct stat*)result, flags);
}

// ---- 2.32 --------------------------------------------------------------------------------------

// False is always right; the C++ library then uses atomic instructions.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

// ---- 2.30 --------------------------------------------------------------------------------------

pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

// Without the real one, a wait with a deadline of the monotonic clock is one of the same duration.
// If the time of day is changed meanwhile, it ends too early, which callers must expect, or late.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
  static ClockWait* _Atomic real;
  static _Atomic int searched;
  if (!searched) {
    real = (ClockWait*)(uintptr_t)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    searched = 1;
  }
  if (real != NULL && real != pthread_cond_clockwait) {
    return real(condition, mutex, clock, deadline);
  }
  struct timespec now, today;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &today) != 0) return EINVAL;
  today.tv_sec += deadline->tv_sec - now.tv_sec;
  today.tv_nsec += deadline->tv_nsec - now.tv_nsec;
  if (today.tv_nsec < 0) {
    today.tv_nsec += 1000000000;
    --today.tv_sec;
  } else if (today.tv_nsec >= 1000000000) {
    today.tv_nsec -= 1000000000;
    ++today.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &today);
}
