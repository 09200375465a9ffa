#include <cupti.h>
#include <string.h>

#include <atomic>

#include "preload/base/export.h"
#include "preload/base/keep_errno.h"
#include "preload/cupti/activities.h"
#include "preload/cupti/subscriber.h"
#include "preload/hooks/cupti_calls.h"
#include "preload/hooks/hook.h"
#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/loader/real_function.h"

namespace gmt::preload {
namespace {

// What a tool's call means.
struct CuptiUse {
  enum class What { kSubscribes, kUnsubscribes, kFinalises, kRegisters, kEnables, kDisables };
  What what;
  uint32_t kind = 0;  // activity kind that is enabled or disabled; single API calls have numbers of
                      // their own
};

using What = CuptiUse::What;

CuptiUse Subscribes() { return {.what = What::kSubscribes}; }
CuptiUse Unsubscribes() { return {.what = What::kUnsubscribes}; }
CuptiUse Finalises() { return {.what = What::kFinalises}; }
CuptiUse RegistersBuffers() { return {.what = What::kRegisters}; }
CuptiUse Enables(CUpti_ActivityKind kind) {
  return {.what = What::kEnables, .kind = static_cast<uint32_t>(kind)};
}
CuptiUse Disables(CUpti_ActivityKind kind) {
  return {.what = What::kDisables, .kind = static_cast<uint32_t>(kind)};
}

// ---- What is in use -----------------------------------------------------------------------------

constexpr uint32_t kKinds = 256;  // the highest kind in CUPTI 13.5 is 60
constexpr uint32_t kCalls = 2048;

// Cache: what the program has set in its copy of CUPTI.
constinit std::atomic<uint32_t> subscriptions{0};
constinit std::atomic<uint64_t> enabled[(kKinds + 2 * kCalls) / 64] = {};

// Single driver and runtime calls are numbered after the kinds.
CuptiUse EnablesCall(CUpti_ActivityKind api, CUpti_CallbackId id, uint8_t enable) {
  const uint32_t first = api == CUPTI_ACTIVITY_KIND_DRIVER ? kKinds : kKinds + kCalls;
  return {.what = enable != 0 ? What::kEnables : What::kDisables,
          .kind = first + (id < kCalls ? id : kCalls - 1)};
}

void SetEnabled(uint32_t kind, bool on) {
  if (kind >= kKinds + 2 * kCalls) return;
  const uint64_t bit = uint64_t{1} << kind % 64;
  if (on) {
    enabled[kind / 64].fetch_or(bit);
  } else {
    enabled[kind / 64].fetch_and(~bit);
  }
}

bool InUse() {
  if (subscriptions.load() != 0) return true;
  for (const std::atomic<uint64_t>& kinds : enabled) {
    if (kinds.load() != 0) return true;
  }
  return false;
}

// Stops at 0: a subscription that ends may not have been seen.
void OneSubscriptionLess() {
  uint32_t now = subscriptions.load();
  while (now != 0 && !subscriptions.compare_exchange_weak(now, now - 1)) {
  }
}

void ForgetAll() {
  subscriptions.store(0);
  for (std::atomic<uint64_t>& kinds : enabled) kinds.store(0);
}

// ---- Effects of a call --------------------------------------------------------------------------

const char* FileName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Returns whether another tool makes the call. Calls by CUPTI itself and by this library do not
// count.
bool IsForeign(const void* caller, const void* real, const char** name) {
  *name = "the program";
  if (ChangingCupti() || InOwnImage(caller)) return false;
  Dl_info of_caller, of_real;
  if (dladdr(caller, &of_caller) == 0) return true;
  if (dladdr(real, &of_real) != 0 && of_caller.dli_fbase == of_real.dli_fbase) return false;
  if (of_caller.dli_fname != nullptr) *name = FileName(of_caller.dli_fname);
  return true;
}

// Returns whether the call makes its caller a user of CUPTI.
bool Begins(What what) {
  return what == What::kSubscribes || what == What::kRegisters || what == What::kEnables;
}

// Returns whether we must release CUPTI before the call. kFinalises would also end our
// subscription.
bool DisplacesUs(What what) {
  return Begins(what) || (what == What::kFinalises && OurCupti() != nullptr);
}

// A tool whose first call failed does not own CUPTI.
void Failed(const CuptiUse& use) {
  if (Begins(use.what) && !InUse()) CuptiIsFree(false);
}

void Succeeded(const CuptiUse& use) {
  const bool was_in_use = InUse();
  switch (use.what) {
    case What::kSubscribes:
      subscriptions.fetch_add(1);
      break;
    case What::kUnsubscribes:
      OneSubscriptionLess();
      break;
    case What::kFinalises:
      ForgetAll();
      return CuptiIsFree(true);
    case What::kRegisters:
      return;
    case What::kEnables:
    case What::kDisables:
      SetEnabled(use.kind, use.what == What::kEnables);
      break;
  }
  if (was_in_use && !InUse()) CuptiIsFree(false);
}

// Replaces arguments of the real call; only for a tool that registers buffer callbacks.
template <typename... Arguments>
void Replace(Arguments&...) {}
void Replace(CUpti_BuffersCallbackRequestFunc& request,
             CUpti_BuffersCallbackCompleteFunc& complete) {
  RegisterForeignBuffers(&request, &complete);
}

enum Api {
#define GMT_CUPTI(name, parameters, arguments, use) kApi_##name,
#include "preload/cupti/hook_table.inc"
  kApiCount,
};

constexpr const char* kNames[] = {
#define GMT_CUPTI(name, parameters, arguments, use) #name,
#include "preload/cupti/hook_table.inc"
};

constexpr const char* kNodes[] = {"libcupti.so.12", "libcupti.so.13"};
constexpr int kNodeCount = sizeof(kNodes) / sizeof(kNodes[0]);
constexpr int kSlots = kNodeCount + kLookedUpSlots;

// Cache: the real functions.
constinit std::atomic<void*> reals[kApiCount][kSlots];

template <typename Function>
Function Real(Api api, int slot) {
  void* real = reals[api][slot].load(std::memory_order_acquire);
  if (real == nullptr && slot < kNodeCount) {
    const KeepErrno keep;
    real = FindVersionedFunction(kNames[api], kNodes[slot]);
    reals[api][slot].store(real, std::memory_order_release);
  }
  return reinterpret_cast<Function>(real);
}

#define GMT_CUPTI(name, parameters, arguments, use)                                     \
  template <int kSlot>                                                                  \
  inline __attribute__((always_inline)) CUptiResult Hook_##name parameters {            \
    const void* const caller = __builtin_return_address(0);                             \
    const auto real = Real<CUptiResult(CUPTIAPI*) parameters>(kApi_##name, kSlot);      \
    if (real == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;                            \
    const CuptiUse call = use;                                                          \
    const char* tool;                                                                   \
    const bool foreign = IsForeign(caller, reinterpret_cast<const void*>(real), &tool); \
    if (foreign && DisplacesUs(call.what)) YieldCupti(tool);                            \
    if (foreign) Replace arguments;                                                     \
    const CUptiResult result = real arguments;                                          \
    if (foreign) result == CUPTI_SUCCESS ? Succeeded(call) : Failed(call);              \
    return result;                                                                      \
  }
#include "preload/cupti/hook_table.inc"

constexpr int kFirst = kNodeCount;
static_assert(kLookedUpSlots == 4);
#define GMT_CUPTI(name, parameters, arguments, use)                                                \
  {reinterpret_cast<void*>(Hook_##name<kFirst>), reinterpret_cast<void*>(Hook_##name<kFirst + 1>), \
   reinterpret_cast<void*>(Hook_##name<kFirst + 2>),                                               \
   reinterpret_cast<void*>(Hook_##name<kFirst + 3>)},
void* const kLookedUp[kApiCount][kLookedUpSlots] = {
#include "preload/cupti/hook_table.inc"
};

int ApiOf(const char* symbol) {
  for (int api = 0; api < kApiCount; ++api) {
    if (strcmp(kNames[api], symbol) == 0) return api;
  }
  return -1;
}

}  // namespace

bool IsHookedOfCupti(const char* symbol) { return ApiOf(symbol) >= 0; }

void* CuptiHookFor(const char* symbol, void* real) {
  const int api = InOwnImage(real) ? -1 : ApiOf(symbol);
  if (api < 0) return real;
  for (int i = 0; i < kLookedUpSlots; ++i) {
    std::atomic<void*>& place = reals[api][kFirst + i];
    void* seen = place.load(std::memory_order_acquire);
    if (seen == nullptr && place.compare_exchange_strong(seen, real, std::memory_order_acq_rel))
      seen = real;
    if (seen == real) return kLookedUp[api][i];
  }
  Process::CountOrDefer(session::kPassedUnhooked);
  return real;
}

}  // namespace gmt::preload

// ---- Exported functions -------------------------------------------------------------------------

#define GMT_EXPORT_CUPTI(slot, suffix, node, name, parameters, arguments) \
  GMT_EXPORT CUptiResult CUPTIAPI gmt_##name##_##suffix parameters {      \
    return gmt::preload::Hook_##name<slot> arguments;                     \
  }                                                                       \
  GMT_VERSIONED(name, suffix, node)

#define GMT_CUPTI(name, parameters, arguments, use)                            \
  GMT_EXPORT_CUPTI(0, cupti12, "@libcupti.so.12", name, parameters, arguments) \
  GMT_EXPORT_CUPTI(1, cupti13, "@@libcupti.so.13", name, parameters, arguments)
#include "preload/cupti/hook_table.inc"
