// A library to be preloaded: it unwinds the stacks of an unmodified program with the profiler's
// unwinder and with libgcc's, and compares the two frame by frame.
//
// Stacks are unwound at every n-th malloc (UNWIND_ORACLE_EVERY; 0: at none), at every cudaMalloc,
// at each call of CheckStack(), and, with UNWIND_ORACLE_TIMER=MICROSECONDS, in a signal handler
// that runs once in that much processor time. At its end each process appends one line to the file
// UNWIND_ORACLE_LOG, preceded by the first stacks that differ. With UNWIND_ORACLE_FALLS, crashes
// of libgcc's unwinder are survived.
//
//   PROGRAM: compared 4711, libgcc fell 0, different 0, slow differs 0, truncated 0, further 0,
//   too deep 0, distinct 801, deepest 93, exact 12

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "preload/loader/loader.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/testing/compare_walks.h"

namespace {

using gmt::preload::NativeFrame;
using gmt::preload::testing::CompareWalks;
using gmt::preload::testing::Comparison;
using gmt::preload::testing::Outcome;
using gmt::preload::testing::WalkedFrames;

std::atomic<uint64_t> outcomes[6], slow_differs, after_last_differs, distinct, exact, mallocs;
std::atomic<uint32_t> deepest, printed;
std::atomic<uint64_t> seen[1 << 18];  // hashes of stacks
uint64_t every = 0;
int log_fd = -1;
timer_t timer = nullptr;
thread_local bool inside = false;
std::atomic<bool> ready{false};

__attribute__((format(printf, 1, 2))) void Log(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (n > 0 && log_fd >= 0) (void)!write(log_fd, line, static_cast<size_t>(n));
}

void LogFrames(const char* who, const WalkedFrames& walked, uint32_t where) {
  const uint32_t first = where < 3 ? 0 : where - 3;
  for (uint32_t i = first; i < walked.count && i < where + 3; ++i) {
    const NativeFrame& f = walked.frames[i];
    Dl_info info = {};
#if !defined(UNWIND_ORACLE_LINKED_IN)
    dladdr(reinterpret_cast<void*>(f.address - (f.exact ? 0 : 1)), &info);
#endif
    Log("  %s %u: %#lx cfa %#lx%s %s+%#lx %s\n", who, i, f.address, f.cfa, f.exact ? " exact" : "",
        info.dli_fname == nullptr ? "?" : info.dli_fname,
        f.address - reinterpret_cast<uint64_t>(info.dli_fbase),
        info.dli_sname == nullptr ? "" : info.dli_sname);
  }
  Log("  %s: %u frames%s\n", who, walked.count, walked.truncated ? ", truncated" : "");
}

void CountStack(const WalkedFrames& own) {
  uint64_t hash = own.count;
  for (uint32_t i = 1; i < own.count; ++i) {
    hash = (hash ^ own.frames[i].address) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 31;
    if (own.frames[i].exact) exact.fetch_add(1, std::memory_order_relaxed);
  }
  if (seen[hash % (sizeof(seen) / sizeof(seen[0]))].exchange(hash) != hash) distinct.fetch_add(1);
  uint32_t d = deepest.load();
  while (own.count > d && !deepest.compare_exchange_weak(d, own.count)) {
  }
}

__attribute__((noinline)) void Check() {
  if (inside || !ready.load(std::memory_order_acquire)) return;
  inside = true;
  const int error = errno;
  Comparison c;
  CompareWalks(outcomes[0].load(std::memory_order_relaxed) % 8 == 0, &c);
  outcomes[static_cast<int>(c.outcome)].fetch_add(1);
  if (c.slow_differs) slow_differs.fetch_add(1);
  if (c.after_last_differs) after_last_differs.fetch_add(1);
  CountStack(c.own);
  const bool usual = c.outcome == Outcome::kSame || c.outcome == Outcome::kTooDeep ||
                     c.outcome == Outcome::kLibgccCrashed;
  if ((!usual || c.slow_differs || c.after_last_differs) && printed.fetch_add(1) < 5) {
    Log("outcome %d at frame %u%s%s\n", static_cast<int>(c.outcome), c.where,
        c.slow_differs ? ", slow differs" : "", c.after_last_differs ? ", after last differs" : "");
    LogFrames("own", c.own, c.where);
    LogFrames("libgcc", c.libgcc, c.where);
    if (c.slow_differs) LogFrames("slow", c.slow, c.where);
    if (c.after_last_differs) LogFrames("after last", c.after_last, c.where);
  }
  errno = error;
  inside = false;
}

void CheckInHandler(int) { Check(); }

void StartTimer(long microseconds) {
  struct sigaction action = {};
  action.sa_handler = CheckInHandler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  // Not setitimer(): its timer would survive exec in another program.
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  const itimerspec times = {{0, microseconds * 1000}, {0, microseconds * 1000}};
  if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0) {
    timer_settime(timer, 0, &times, nullptr);
  }
}

__attribute__((constructor)) void Begin() {
  const char* text = getenv("UNWIND_ORACLE_EVERY");
  const char* path = getenv("UNWIND_ORACLE_LOG");
  every = text == nullptr ? 0 : strtoull(text, nullptr, 10);
  log_fd = path == nullptr ? 2
                           : fcntl(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
                                   F_DUPFD_CLOEXEC, 500);
  inside = true;
  if (getenv("UNWIND_ORACLE_FALLS") != nullptr) gmt::preload::testing::InstallCrashHandler();
  gmt::preload::PrepareModules();
  WalkedFrames first;  // libgcc's first walk allocates
  _Unwind_Backtrace(gmt::preload::testing::CollectFrame, &first);
  inside = false;
  ready.store(true, std::memory_order_release);
  const char* period = getenv("UNWIND_ORACLE_TIMER");
  if (period != nullptr) StartTimer(strtol(period, nullptr, 10));
}

__attribute__((destructor)) void End() {
  const itimerspec never = {};
  if (timer != nullptr) timer_settime(timer, 0, &never, nullptr);
  inside = true;
  const auto n = [](Outcome o) {
    return static_cast<unsigned long>(outcomes[static_cast<int>(o)].load());
  };
  Log("%s: compared %lu, libgcc fell %lu, different %lu, slow differs %lu, after last differs "
      "%lu, truncated %lu, further %lu, too deep %lu, distinct %lu, deepest %u, exact %lu\n",
      program_invocation_short_name,
      n(Outcome::kSame) + n(Outcome::kTooDeep) + n(Outcome::kTruncated) + n(Outcome::kFurther) +
          n(Outcome::kDifferent),
      n(Outcome::kLibgccCrashed), n(Outcome::kDifferent), slow_differs.load(),
      after_last_differs.load(), n(Outcome::kTruncated), n(Outcome::kFurther), n(Outcome::kTooDeep),
      distinct.load(), deepest.load(), exact.load());
  inside = false;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void CheckStack() {
  Check();
  asm volatile("");  // not a tail call: this function's frame is compared too
}

#if defined(UNWIND_ORACLE_LINKED_IN)

// A static program has no dlsym().
void* gmt::preload::LibcDlsym(void*, const char*) { return nullptr; }

#else

extern "C" void* __libc_malloc(size_t size);  // calls malloc without a lookup

EXPORT void* malloc(size_t size) {
  if (every != 0 && mallocs.fetch_add(1, std::memory_order_relaxed) % every == 0) Check();
  return __libc_malloc(size);
}

// As in preload/routes/dlclose.cc. UNWIND_ORACLE_STALE skips it, to show what happens then.
EXPORT int dlclose(void* library) {
  static const auto next = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "dlclose"));
  static const bool stale = getenv("UNWIND_ORACLE_STALE") != nullptr;
  if (stale) return next(library);
  gmt::preload::RulesInDoubt rules;
  return next(library);
}

EXPORT int cudaMalloc(void** address, size_t size) {
  static const auto next =
      reinterpret_cast<int (*)(void**, size_t)>(dlsym(RTLD_NEXT, "cudaMalloc"));
  Check();
  return next(address, size);
}

#endif
