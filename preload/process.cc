#include "preload/process.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "preload/attach.h"
#include "preload/cupti/attention.h"
#include "preload/early_streams.h"
#include "preload/nvtx/injection.h"
#include "preload/record_event.h"
#include "preload/record_source.h"
#include "preload/route.h"
#include "preload/start.h"
#include "preload/thread_state.h"
#include "preload/writing.h"

// pthread_atfork is implemented by this function in glibc, and only there. Programs of other libcs
// get no strong reference (preload/loader.h).
extern "C" __attribute__((weak)) int __register_atfork(void (*prepare)(), void (*parent)(),
                                                       void (*child)(), void* library);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace gmt::preload {
namespace {

constexpr int kWaitSteps = 2000;  // milliseconds

// Counts made before there was a session to hold them.
constinit std::atomic<uint32_t> uncounted[session::kCounterCount] = {};

void CountUncounted(const Process& p) {
  for (uint32_t i = 0; i < session::kCounterCount; ++i) {
    if (uncounted[i].load() != 0) p.map.control().counters[i].fetch_add(uncounted[i].exchange(0));
  }
}

// Records when interception began, if that was after the start of the process.
[[gnu::noinline]] void TellRoute(Process* p) {
  char text[1024];
  if (DescribeLateRoute(text, sizeof(text))) RecordSource(p, "calls", text);
}

// The largest of the page sizes that the kernel supports on this architecture.
#ifdef __x86_64__
constexpr size_t kPage = 4096;
#else
constexpr size_t kPage = 65536;
#endif
constexpr size_t kPagesBytes = (sizeof(Process) + kPage - 1) / kPage * kPage;

// If the kernel cannot zero pages in a fork child, the child does it itself.
void WipeInChild(void* pages) {
  static constinit std::atomic<void*> wiped{nullptr};
  if (madvise(pages, kPagesBytes, MADV_WIPEONFORK) == 0) return;
  if (wiped.exchange(pages) != nullptr || &__register_atfork == nullptr) return;
  __register_atfork(
      nullptr, nullptr, [] { memset(wiped.load(), 0, sizeof(Process)); }, __dso_handle);
}

}  // namespace

thread_local constinit ThreadState thread_state = {};
// In .bss, which the loader maps as anonymous memory: the kernel can zero that in a fork child.
alignas(kPage) constinit char Process::pages_[kPagesBytes] = {};

Process* Process::StartOrWait() {
  Process* p = Here();
  uint32_t seen = p->status.load(std::memory_order_acquire);
  if (seen != kIdle && seen != kStarting) return seen == kRecording ? p : nullptr;
  if (seen == kIdle) WipeInChild(p);
  const uint32_t self = static_cast<uint32_t>(syscall(SYS_gettid));
  if (seen == kIdle && p->status.compare_exchange_strong(seen, kStarting)) {
    p->starter.store(self, std::memory_order_relaxed);
    return Start(p);
  }
  for (int step = 0; seen == kStarting && step < kWaitSteps; ++step) {
    // A signal handler on the starting thread would wait for itself.
    if (p->starter.load(std::memory_order_relaxed) == self) break;
    const timespec millisecond = {0, 1000000};
    syscall(SYS_nanosleep, &millisecond, nullptr);  // not a cancellation point
    seen = p->status.load(std::memory_order_acquire);
  }
  if (seen == kRecording) return p;
  if (seen == kStarting) CountEver(session::kBeforeSession);
  return nullptr;
}

Process* Process::Start(Process* p) {
  const Nesting nesting;
  p->door.Close();
  p->BeginAnew(0);
  const Begun begun = StartSession(p);
  if (begun == Begun::kDormant) {
    p->LookAtDoor();
  } else {
    p->LookAt(begun == Begun::kRecording ? p->options.heaps : 0);
  }
  p->status.store(begun == Begun::kRecording ? kRecording
                  : begun == Begun::kDormant ? kDormant
                                             : kOff);
  if (begun != Begun::kRecording) return nullptr;
  p->TellFirst(p->identity);
  return p;
}

Process* Process::OpenDoor() {
  StartOrWait();
  Process* p = Here();
  const uint32_t status = p->status.load(std::memory_order_acquire);
  return status == kIdle || status == kStarting || status == kOff ? nullptr : p;
}

bool Process::SkipsBehindDoor(uint32_t heaps) {
  const Process* p = Here();
  return (p->looked_at.load(std::memory_order_relaxed) & heaps) == 0 && !p->door.IsTurned();
}

Process* Process::Turn(Process* p) {
  const KeepErrno keep;
  uint32_t status = p->status.load(std::memory_order_acquire);
  if (status == kTurning || !p->status.compare_exchange_strong(status, kTurning)) return nullptr;
  const Nesting nesting;
  if (status != kDormant) {
    p->status.store(EndAttach(p, status == kRecording));
    return nullptr;
  }
  const Status now = BeginAttach(p);
  const uint32_t recording = p->identity;
  p->status.store(now);  // from here on other threads may end it and begin the next
  if (now != kRecording) return nullptr;
  p->TellFirst(recording);
  return p;
}

// A pid has 22 bits.
void Process::BeginAnew(uint32_t attach) {
  identity = static_cast<uint32_t>(getpid()) | attach << 22;
  first_range = last_range.load(std::memory_order_relaxed);
  python_source.store(nullptr, std::memory_order_relaxed);
  for (std::atomic<uint64_t>& known : known_devices) known.store(0, std::memory_order_relaxed);
  if (attach == 0) return;  // the page is zero
  torch.Forget();
  nvtx.Forget();
}

void Process::TellFirst(uint32_t recording) {
  if (const Writing p(this, recording); p != nullptr) {
    CountUncounted(*p);
    TellEarlyStreams(p);
    TellNvtx(p);
  }
  BeginCuptiEarly(this);
  if (const Writing p(this, recording); p != nullptr) {
    TellRoute(p);
    if (door.is_open) TellWhatWasBefore(p);
  }
}

void Process::CountEver(session::Counter counter) {
  uncounted[counter].fetch_add(1);
  // A session may have been created meanwhile. The later of the two threads finds the count.
  const Process* p = Here();
  if (p->status.load() == kRecording) CountUncounted(*p);
}

}  // namespace gmt::preload
