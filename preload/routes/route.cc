#include "preload/routes/route.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include <atomic>

#include "preload/base/thread_state.h"
#include "preload/loader/dynamic_symbols.h"
#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/record/driver_query.h"
#include "preload/routes/got_patch.h"
#include "preload/routes/kept_pointers.h"

namespace gmt::preload {
namespace {

using Catching = int (*)();

constexpr int kMaxCopies = 8;

enum class Preloaded : uint8_t { kNotKnown, kCatches, kNever };

// Cache: how calls are intercepted, in a fork child as in its parent.
constinit std::atomic<uint32_t> late_route{0};
constinit std::atomic<Preloaded> known_preloaded{Preloaded::kNotKnown};
constinit std::atomic<bool> after_the_driver{false};
constinit char kept_by_others[512] = {};

// The other copies of this library in the process.
struct Copies {
  bool before_own = true;
  bool only_before_own;
  int count = 0;
  Catching catching[kMaxCopies];
};

int AddCopy(dl_phdr_info* info, size_t, void* argument) {
  auto* copies = static_cast<Copies*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const uint64_t dynamic = info->dlpi_addr + header.p_vaddr;
    if (InOwnImage(dynamic)) {
      copies->before_own = false;
      return copies->only_before_own ? 1 : 0;
    }
    void* catching = DynamicSymbols(info->dlpi_addr, reinterpret_cast<const ElfW(Dyn)*>(dynamic))
                         .Find("gpumemtrace_catching");
    if (catching != nullptr && copies->count < kMaxCopies)
      copies->catching[copies->count++] = reinterpret_cast<Catching>(catching);
  }
  return 0;
}

}  // namespace

// The order of the loader's list is that of the global scope. Of two preloaded copies the first is
// called first, and it asks no copy after it, so there is no cycle.
bool AnotherCopyCatches(char* path, size_t capacity) {
  Copies copies;
  copies.only_before_own = LoadedAtStart();
  dl_iterate_phdr(AddCopy, &copies);
  for (int i = 0; i < copies.count; ++i) {
    if (copies.catching[i]() == 0) continue;
    Dl_info info;
    const bool known = dladdr(reinterpret_cast<void*>(copies.catching[i]), &info) != 0;
    if (capacity != 0)
      strncpy(path, known ? info.dli_fname : "", capacity - 1)[capacity - 1] = '\0';
    return true;
  }
  return false;
}

// A preloaded library stays preloaded, and none can come before it later.
Route RouteTaken() {
  const auto late = static_cast<Route>(late_route.load(std::memory_order_acquire));
  if (late != Route::kNone) return late;
  Preloaded preloaded = known_preloaded.load(std::memory_order_relaxed);
  if (preloaded == Preloaded::kNotKnown) {
    preloaded = LoadedAtStart() && !AnotherCopyCatches(nullptr, 0) ? Preloaded::kCatches
                                                                   : Preloaded::kNever;
    known_preloaded.store(preloaded, std::memory_order_relaxed);
  }
  return preloaded == Preloaded::kCatches ? Route::kPreload : Route::kNone;
}

bool BeginLate(Route route) {
  if (getauxval(AT_SECURE) != 0 || AnotherCopyCatches(nullptr, 0)) return false;
  auto seen = static_cast<uint32_t>(Route::kNone);
  if (!late_route.compare_exchange_strong(seen, static_cast<uint32_t>(route))) return true;
  const Nesting nesting;
  FindLoaderFunctions();
  // The driver must not be queried while it is being initialized.
  if (route != Route::kInjection && AnyLibraryIsNamed("libcuda.so"))
    after_the_driver.store(DriverIsInitialized(), std::memory_order_relaxed);
  PatchNewModules();
  // Done now, because modules that get driver functions later get them through our hooks, and cache
  // only addresses of functions that are not hooked.
  FindKeptPointers(kept_by_others, sizeof(kept_by_others));
  return true;
}

bool DescribeLateRoute(char* text, size_t capacity) {
  const Route route = RouteTaken();
  if (route == Route::kPreload || route == Route::kNone) return false;
  const bool kept = *KeptByOthers() != '\0';
  const int n = snprintf(
      text, capacity, "on: %s%s%s%s",
      route == Route::kInjection ? "injected by the driver"
      : route == Route::kAttach  ? "injected by attach"
                                 : "started by the program",
      BeganAfterTheDriver() ? "; earlier allocations are unknown" : "",
      !kept ? ""
      : route == Route::kAttach
          ? "; modules seen only while cupti is on, because they already had addresses of driver "
            "functions: "
          : "; modules not seen, because they already had addresses of driver functions: ",
      KeptByOthers());
  return n > 0;
}

const char* KeptByOthers() { return kept_by_others; }

bool BeganAfterTheDriver() { return after_the_driver.load(std::memory_order_relaxed); }

}  // namespace gmt::preload
