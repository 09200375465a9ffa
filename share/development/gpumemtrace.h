/* gpumemtrace.h: marks, ranges and snapshots in the recording that gpumemtrace makes of a program.

   The functions may stay in a program permanently. They look for the library that records it when
   they are called first. Without that library, or before the first call of the GPU, they do nothing.
   A program needs no library to link with them, except libdl with glibc older than 2.34.

   C99 or C++, GCC or Clang. Thread safety: any function, from any thread. Names are copied and may
   have up to 1024 bytes. */

#ifndef GPUMEMTRACE_H
#define GPUMEMTRACE_H

#include <dlfcn.h>
#include <stdint.h>

/* The index of a mark that has none. */
#define GPUMEMTRACE_NO_INDEX UINT64_MAX

/* Returns the function of that name in a library of this process, or a null pointer. `*known` is
   what was found before: itself, if there was none. */
static inline void *gpumemtrace_find_function(void **known, const char *name) {
  void *function = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (function == 0) {
    function = dlsym(0, name); /* 0 is RTLD_DEFAULT, which is declared for _GNU_SOURCE only */
    if (function == 0) function = (void *)known;
    __atomic_store_n(known, function, __ATOMIC_RELAXED);
  }
  return function == (void *)known ? 0 : function;
}

/* Returns 1 while this process is being recorded, otherwise 0. */
static inline int gpumemtrace_recording(void) {
  static void *known;
  int (*function)(void);
  *(void **)&function = gpumemtrace_find_function(&known, "gpumemtrace_recording");
  return function == 0 ? 0 : function();
}

/* Records a named moment, with an index or GPUMEMTRACE_NO_INDEX. Marks that recur under one name,
   such as "step", are taken as cycles. */
static inline void gpumemtrace_mark(const char *name, uint64_t index) {
  static void *known;
  void (*function)(const char *, uint64_t);
  *(void **)&function = gpumemtrace_find_function(&known, "gpumemtrace_mark");
  if (function != 0) function(name, index);
}

/* Begins a range, which lasts until gpumemtrace_range_end() is called with the returned number.
   Returns 0 if the process is not being recorded. */
static inline uint64_t gpumemtrace_range_begin(const char *name) {
  static void *known;
  uint64_t (*function)(const char *);
  *(void **)&function = gpumemtrace_find_function(&known, "gpumemtrace_range_begin");
  return function == 0 ? 0 : function(name);
}

static inline void gpumemtrace_range_end(uint64_t range) {
  static void *known;
  void (*function)(uint64_t);
  *(void **)&function = gpumemtrace_find_function(&known, "gpumemtrace_range_end");
  if (function != 0) function(range);
}

/* Requests a snapshot of what is live, under that name. Returns at once: 1, or 0 if no snapshot
   will be written. */
static inline int gpumemtrace_snapshot(const char *name) {
  static void *known;
  int (*function)(const char *);
  *(void **)&function = gpumemtrace_find_function(&known, "gpumemtrace_snapshot");
  return function == 0 ? 0 : function(name);
}

#endif /* GPUMEMTRACE_H */
