#include "preload/process/process.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// pthread_atfork is implemented by this function in glibc, and only there. Programs of other libcs
// get no strong reference (preload/loader/loader.h).
extern "C" __attribute__((weak)) int __register_atfork(void (*prepare)(), void (*parent)(),
                                                       void (*child)(), void* library);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace gmt::preload {
namespace {

// State: counts made in the process `deferred_in` before there was a session to hold them.
constinit std::atomic<uint32_t> deferred_counts[session::kCounterCount] = {};
constinit std::atomic<pid_t> deferred_in{0};

// The largest of the page sizes that the kernel supports on this architecture.
#ifdef __x86_64__
constexpr size_t kLargestPage = 4096;
#else
constexpr size_t kLargestPage = 65536;
#endif
constexpr size_t kPagesBytes = (sizeof(Process) + kLargestPage - 1) / kLargestPage * kLargestPage;

}  // namespace

// State: the kernel zeroes it in a fork child. In .bss, which the loader maps as anonymous memory.
alignas(kLargestPage) constinit char Process::pages_[kPagesBytes] = {};

// If the kernel cannot zero pages in a fork child, the child does it itself.
void Process::WipeInForkChild() {
  static constinit std::atomic<void*> wiped{nullptr};
  if (madvise(pages_, kPagesBytes, MADV_WIPEONFORK) == 0) return;
  if (wiped.exchange(pages_) != nullptr || &__register_atfork == nullptr) return;
  __register_atfork(
      nullptr, nullptr, [] { memset(wiped.load(), 0, sizeof(Process)); }, __dso_handle);
}

bool Process::SkipsIfAttachable(uint32_t heaps) {
  const Process* p = Here();
  return (p->fast_path_heaps.load(std::memory_order_relaxed) & heaps) == 0 &&
         !p->attach_gate.HasPendingRequest();
}

// A pid has 22 bits, which leaves 10 for the attach.
void Process::ResetForRecording(uint32_t attach) {
  identity = static_cast<uint32_t>(getpid()) | attach << 22;
  first_range = last_range.load(std::memory_order_relaxed);
  python_source.store(nullptr, std::memory_order_relaxed);
  for (std::atomic<uint64_t>& known : known_devices) known.store(0, std::memory_order_relaxed);
  if (attach == 0) return;  // the page is zero
  torch.Forget();
  nvtx.Forget();
}

void Process::FlushDeferredCounts() const {
  if (deferred_in.load() != getpid()) return;
  for (uint32_t i = 0; i < session::kCounterCount; ++i) {
    if (deferred_counts[i].load() != 0)
      map.control().counters[i].fetch_add(deferred_counts[i].exchange(0));
  }
}

void Process::CountOrDefer(session::Counter counter) {
  const pid_t here = getpid();
  const pid_t before = deferred_in.exchange(here);
  if (before != here && before != 0) {  // in a fork child, which is single-threaded at first
    for (std::atomic<uint32_t>& count : deferred_counts) count.store(0);
  }
  deferred_counts[counter].fetch_add(1);
  // A session may have been created meanwhile. The later of the two threads finds the count.
  const Process* p = Here();
  if (p->status.load() == kRecording) p->FlushDeferredCounts();
}

}  // namespace gmt::preload
