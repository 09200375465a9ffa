#include "collector/sessions/bus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace gmt::collector {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr uint32_t kMaxMissing = 16384;  // pages; a session has 8,000

constinit std::atomic<uintptr_t> missing[kMaxMissing];
constinit std::atomic<uint32_t> missing_count{0};

// Async-signal context: only system calls and lock-free atomics.
void MapZeroPage(int signal_number, siginfo_t* info, void*) {
  const uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) & ~(kPage - 1);
  void* const zeros = info->si_code != BUS_ADRERR
                          ? MAP_FAILED
                          : mmap(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (zeros == MAP_FAILED) {
    signal(signal_number, SIG_DFL);  // the instruction faults again and ends the process
    return;
  }
  const uint32_t n = missing_count.fetch_add(1, std::memory_order_relaxed);
  if (n < kMaxMissing) missing[n].store(page, std::memory_order_release);
}

}  // namespace

void BusGuard::Install() {
  struct sigaction action = {};
  action.sa_sigaction = MapZeroPage;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

uint64_t BusGuard::MissingPages(const void* start, size_t size) {
  const uint32_t count = std::min(missing_count.load(std::memory_order_relaxed), kMaxMissing);
  const uintptr_t first = reinterpret_cast<uintptr_t>(start);
  return static_cast<uint64_t>(std::count_if(missing, missing + count, [&](const auto& page) {
    return page.load(std::memory_order_acquire) - first < size;
  }));
}

void BusGuard::Forget(const void* start, size_t size) {
  const uint32_t count = std::min(missing_count.load(std::memory_order_relaxed), kMaxMissing);
  const uintptr_t first = reinterpret_cast<uintptr_t>(start);
  for (uint32_t n = 0; n < count; ++n) {
    if (missing[n].load(std::memory_order_acquire) - first < size)
      missing[n].store(0, std::memory_order_release);
  }
}

}  // namespace gmt::collector
