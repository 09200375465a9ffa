#include "preload/hook.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include <type_traits>

#include "preload/export.h"
#include "preload/own_image.h"
#include "preload/real_function.h"

namespace gmt::preload {
namespace {

enum Api : ApiId {
  kNoApi = 0,
#define GMT_RUNTIME(name, parameters, arguments, event) kApi_##name,
#define GMT_DRIVER(name, query, version, parameters, arguments, event) kApi_##name,
#include "preload/hook_table.inc"
#undef GMT_RUNTIME
#undef GMT_DRIVER
  kApiEnd,
};

constexpr const char* kNames[] = {
    nullptr,
#define GMT_RUNTIME(name, parameters, arguments, event) #name,
#define GMT_DRIVER(name, query, version, parameters, arguments, event) #name,
#include "preload/hook_table.inc"
#undef GMT_RUNTIME
#undef GMT_DRIVER
};

constexpr int kRuntimeSlots = sizeof(kRuntimeNodes) / sizeof(kRuntimeNodes[0]);
constexpr int kSlots = kRuntimeSlots > kDriverSlots ? kRuntimeSlots : kDriverSlots;

// The real function of each slot, found at its first call; of a driver slot, when the pointer is
// handed out.
constinit std::atomic<void*> reals[kApiEnd][kSlots];

void CountMissing() {
  Process* p = Process::IfRecording();
  if (p != nullptr) p->Count(session::kNoRealFunction);
}

void* FindReal(Api api, int slot, bool runtime) {
  const KeepErrno keep;
  const Nesting nesting;
  void* real = runtime     ? FindRuntimeFunction(kNames[api], kRuntimeNodes[slot])
               : slot == 0 ? FindDriverFunction(kNames[api])
                           : nullptr;
  if (real == nullptr) CountMissing();
  reals[api][slot].store(real, std::memory_order_release);
  return real;
}

template <typename Function>
Function Real(Api api, int slot, bool runtime) {
  void* real = reals[api][slot].load(std::memory_order_acquire);
  return reinterpret_cast<Function>(real != nullptr ? real : FindReal(api, slot, runtime));
}

// One function template per line of the table; its instances are the hooks.
#define GMT_HOOK(Result, is_runtime, name, parameters, arguments, event)          \
  static_assert(std::is_same_v<decltype(::name), Result parameters>,              \
                #name " has another signature in CUDA");                          \
  template <int kSlot>                                                            \
  Result Hook_##name parameters {                                                 \
    const auto real = Real<Result(*) parameters>(kApi_##name, kSlot, is_runtime); \
    if (real == nullptr) return static_cast<Result>(kSymbolNotFound);             \
    return Trace<Result>(kApi_##name, event, [&] { return real arguments; });     \
  }
#define GMT_RUNTIME(name, parameters, arguments, event) \
  GMT_HOOK(cudaError_t, true, name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  GMT_HOOK(CUresult, false, name, parameters, arguments, event)
#include "preload/hook_table.inc"
#undef GMT_RUNTIME
#undef GMT_DRIVER

struct DriverHook {
  Api api;
  const char* query;
  unsigned version;
  void* hooks[kDriverSlots];  // by slot; the first is the exported name's
};

#define GMT_RUNTIME(name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event)                         \
  {kApi_##name,                                                                                \
   query,                                                                                      \
   version,                                                                                    \
   {nullptr, reinterpret_cast<void*>(Hook_##name<1>), reinterpret_cast<void*>(Hook_##name<2>), \
    reinterpret_cast<void*>(Hook_##name<3>)}},
const DriverHook kDriverHooks[] = {
#include "preload/hook_table.inc"
};
#undef GMT_RUNTIME
#undef GMT_DRIVER

// The youngest variant of the function that a caller of this CUDA version knows.
const DriverHook* FindDriverHook(const char* query, unsigned version) {
  const DriverHook* best = nullptr;
  for (const DriverHook& hook : kDriverHooks) {
    if (strcmp(hook.query, query) != 0 || hook.version > version) continue;
    if (best == nullptr || hook.version > best->version) best = &hook;
  }
  return best;
}

}  // namespace

const char* ApiName(ApiId api) { return api < kApiEnd ? kNames[api] : nullptr; }

void* DriverHookFor(const char* name, unsigned version, void* real) {
  if (real == nullptr || InOwnImage(real)) return real;
  const DriverHook* hook = FindDriverHook(name, version);
  if (hook == nullptr) return real;
  for (int slot = 1; slot < kDriverSlots; ++slot) {
    std::atomic<void*>& place = reals[hook->api][slot];
    void* seen = place.load(std::memory_order_acquire);
    if (seen == nullptr && place.compare_exchange_strong(seen, real, std::memory_order_acq_rel))
      seen = real;
    if (seen == real) return hook->hooks[slot];
  }
  Process* p = Process::IfRecording();
  if (p != nullptr) p->Count(session::kPassedUnhooked);
  return real;
}

}  // namespace gmt::preload

// ---- What the library exports -------------------------------------------------------------------

#define GMT_EXPORT_RUNTIME(slot, suffix, node, name, parameters, arguments) \
  GMT_EXPORT cudaError_t gmt_##name##_##suffix parameters {                 \
    return gmt::preload::Hook_##name<slot> arguments;                       \
  }                                                                         \
  GMT_VERSIONED(name, suffix, node)

#define GMT_RUNTIME(name, parameters, arguments, event) \
  GMT_FOR_EACH_RUNTIME(GMT_EXPORT_RUNTIME, name, parameters, arguments)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  GMT_EXPORT CUresult name parameters { return gmt::preload::Hook_##name<0> arguments; }
#include "preload/hook_table.inc"
#undef GMT_RUNTIME
#undef GMT_DRIVER
