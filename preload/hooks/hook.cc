#include "preload/hooks/hook.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include <type_traits>

#include "preload/base/export.h"
#include "preload/hooks/call_words.h"
#include "preload/hooks/cupti_calls.h"
#include "preload/hooks/traced_call.h"
#include "preload/loader/own_image.h"
#include "preload/loader/real_function.h"
#include "preload/record/driver_query.h"
#include "preload/routes/route.h"

// Functions that CUDA 13's headers no longer declare.
extern "C" cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies,
                                           const cudaGraphEdgeData* edges, size_t count,
                                           cudaGraphNodeParams* parameters);

namespace gmt::preload {
namespace {

enum Api : ApiId {
  kNoApi = 0,
#define GMT_RUNTIME(name, parameters, arguments, event) kApi_##name,
#define GMT_DRIVER(name, query, version, parameters, arguments, event) kApi_##name,
#include "preload/hooks/hook_table.inc"
  kApiEnd,
};

constexpr const char* kNames[] = {
    nullptr,
#define GMT_RUNTIME(name, parameters, arguments, event) #name,
#define GMT_DRIVER(name, query, version, parameters, arguments, event) #name,
#include "preload/hooks/hook_table.inc"
};

// A hooked function: its first slot for looked-up pointers, and its name in driver queries.
struct Hook {
  const char* symbol;
  int first_looked_up;
  const char* query;  // nullptr: not a driver function
  unsigned version;
  bool per_thread;
  void* hooks[kLookedUpSlots];
};

constexpr int kSlots = kRuntimeNodeCount + kLookedUpSlots;

// Cache: the real function of each slot. It is looked up at the first call or, for a slot of a
// looked-up pointer, set when the pointer is handed out.
constinit std::atomic<void*> reals[kApiEnd][kSlots];

__attribute__((noinline, cold)) void* FindReal(Api api, int slot, bool runtime) {
  const KeepErrno keep;
  const Nesting nesting;
  void* real = runtime && slot < kRuntimeNodeCount
                   ? FindRuntimeFunction(kNames[api], kRuntimeNodes[slot])
               : !runtime && slot == 0 ? FindDriverFunction(kNames[api])
                                       : nullptr;
  if (real == nullptr) Process::CountOrDefer(session::kNoRealFunction);
  reals[api][slot].store(real, std::memory_order_release);
  return real;
}

template <typename Function>
Function Real(Api api, int slot, bool runtime) {
  void* real = reals[api][slot].load(std::memory_order_acquire);
  if (__builtin_expect(real == nullptr, false)) real = FindReal(api, slot, runtime);
  return reinterpret_cast<Function>(real);
}

// A query that names no version gets that of the runtime to which it is directed.
unsigned RuntimeVersion(int slot) {
  constexpr unsigned kNewestKnown[] = {11080, 12090, 13990, 14990, 15990};
  const int node = slot < kRuntimeNodeCount ? slot : kRuntimeNodeCount - 1;
  static constinit std::atomic<unsigned> versions[kRuntimeNodeCount];
  unsigned version = versions[node].load(std::memory_order_relaxed);
  if (version != 0) return version;
  const KeepErrno keep;
  const auto get = reinterpret_cast<decltype(&cudaRuntimeGetVersion)>(
      FindRuntimeFunction("cudaRuntimeGetVersion", kRuntimeNodes[node]));
  int reported = 0;
  const bool known = get != nullptr && get(&reported) == cudaSuccess && reported > 0;
  version = known ? static_cast<unsigned>(reported) : kNewestKnown[node];
  versions[node].store(version, std::memory_order_relaxed);
  return version;
}

// Returns what a call of cudaGraphAddNode adds. Before CUDA 13 there were no edges between the
// dependencies and their count, and the parameters were in the current position of the count.
// Returns nullptr if unknown; the hook of the driver function that the runtime calls then records
// it.
CUgraphNodeParams* NodeParameters(int slot, size_t fifth, cudaGraphNodeParams* sixth) {
  static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
  constexpr int kFirstWithEdges = 2;  // libcudart.so.13
  if (slot >= kRuntimeNodeCount) return nullptr;
  return slot >= kFirstWithEdges ? reinterpret_cast<CUgraphNodeParams*>(sixth)
                                 : reinterpret_cast<CUgraphNodeParams*>(fifth);
}

// One function template per entry of the table; its instances are the hooks. The path of a call
// that is not recorded is short and inlined; the rest exists once per signature.
#define GMT_HOOK(Result, is_runtime, name, parameters, arguments, event)          \
  static_assert(std::is_same_v<decltype(::name), Result parameters>,              \
                #name " has another signature in CUDA");                          \
  template <int kSlot>                                                            \
  inline __attribute__((always_inline)) Result Hook_##name parameters {           \
    [[maybe_unused]] const void* const caller = __builtin_return_address(0);      \
    const auto real = Real<Result(*) parameters>(kApi_##name, kSlot, is_runtime); \
    if (real == nullptr) return static_cast<Result>(kSymbolNotFound);             \
    const auto describe = [&] { return event; };                                  \
    if (PassesThrough(describe)) return real arguments;                           \
    return [&](auto... arguments_of_call) {                                       \
      return Trace(kApi_##name, describe(), real, arguments_of_call...);          \
    } arguments;                                                                  \
  }
#define GMT_RUNTIME(name, parameters, arguments, event) \
  GMT_HOOK(cudaError_t, true, name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  GMT_HOOK(CUresult, false, name, parameters, arguments, event)
#include "preload/hooks/hook_table.inc"

#define GMT_LOOKED_UP(name, first)                                                                \
  {                                                                                               \
    reinterpret_cast<void*>(Hook_##name<first>), reinterpret_cast<void*>(Hook_##name<first + 1>), \
        reinterpret_cast<void*>(Hook_##name<first + 2>),                                          \
        reinterpret_cast<void*>(Hook_##name<first + 3>)                                           \
  }
#define GMT_RUNTIME(name, parameters, arguments, event) \
  {#name, kRuntimeNodeCount, nullptr, 0, false, GMT_LOOKED_UP(name, kRuntimeNodeCount)},
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  {#name, 1, query, version, false, GMT_LOOKED_UP(name, 1)},
#define GMT_DRIVER_PER_THREAD(name, query, version, parameters, arguments, event) \
  {#name, 1, query, version, true, GMT_LOOKED_UP(name, 1)},
const Hook kHooks[] = {
#include "preload/hooks/hook_table.inc"
};
#undef GMT_LOOKED_UP

Api ApiOf(const Hook& hook) { return static_cast<Api>(&hook - kHooks + 1); }

const Hook* FindHook(const char* symbol) {
  for (const Hook& hook : kHooks) {
    if (strcmp(hook.symbol, symbol) == 0) return &hook;
  }
  return nullptr;
}

// Finds the newest variant of the function that both a caller of this CUDA version and the driver
// support; for callers with per-thread default streams, the variant for these if there is one.
const Hook* FindHook(const HandingOut& what) {
  const Hook* best = nullptr;
  const unsigned driver = DriverVersion();
  const unsigned version = what.version < driver ? what.version : driver;
  for (const Hook& hook : kHooks) {
    if (hook.query == nullptr || strcmp(hook.query, what.name) != 0) continue;
    if (hook.version > version || (hook.per_thread && !what.per_thread)) continue;
    if (best == nullptr || hook.per_thread > best->per_thread ||
        (hook.per_thread == best->per_thread && hook.version > best->version)) {
      best = &hook;
    }
  }
  return best;
}

void* HookFor(const Hook& hook, void* real) {
  std::atomic<void*>* places = reals[ApiOf(hook)] + hook.first_looked_up;
  for (int i = 0; i < kLookedUpSlots; ++i) {
    void* seen = places[i].load(std::memory_order_acquire);
    if (seen == nullptr && places[i].compare_exchange_strong(seen, real, std::memory_order_acq_rel))
      seen = real;
    if (seen == real) return hook.hooks[i];
  }
  Process::CountOrDefer(session::kPassedUnhooked);
  return real;
}

// If another copy of this library intercepts calls, that copy hands out its hooks, and each
// function must have only one address.
bool SteppedBack() { return RouteTaken() == Route::kNone; }

}  // namespace

const char* ApiName(ApiId api) { return api < kApiEnd ? kNames[api] : nullptr; }

bool AnyHookUsed() {
  for (const auto& slots : reals) {
    for (const std::atomic<void*>& real : slots) {
      if (real.load(std::memory_order_relaxed) != nullptr) return true;
    }
  }
  return false;
}

bool IsHooked(const char* symbol) { return FindHook(symbol) != nullptr || IsHookedOfCupti(symbol); }

void* HookFor(const char* symbol, void* real) {
  if (SteppedBack()) return real;
  const Hook* hook = InOwnImage(real) ? nullptr : FindHook(symbol);
  return hook == nullptr ? CuptiHookFor(symbol, real) : HookFor(*hook, real);
}

void* HookInFrontOf(const char* symbol, const char* node, void* exported, void* real) {
  const Hook* hook = FindHook(symbol);
  if (hook == nullptr || real == nullptr) return exported;
  const bool driver = hook->query != nullptr;
  int slot = driver ? 0 : kRuntimeNodeCount;
  for (int i = 0; !driver && node != nullptr && i < kRuntimeNodeCount; ++i) {
    if (strcmp(node, kRuntimeNodes[i]) == 0) slot = i;
  }
  // the caller requests a version that is not a runtime's
  if (slot == kRuntimeNodeCount) return HookFor(*hook, real);
  void* seen = nullptr;
  reals[ApiOf(*hook)][slot].compare_exchange_strong(seen, real, std::memory_order_acq_rel);
  return seen == nullptr || seen == real ? exported : HookFor(*hook, real);
}

void HandOutHook(const HandingOut& what) {
  const KeepErrno keep;
  if (what.name == nullptr || what.function == nullptr || *what.function == nullptr ||
      InOwnImage(*what.function) || SteppedBack()) {
    return;
  }
  const Hook* hook = FindHook(what);
  if (hook != nullptr) *what.function = HookFor(*hook, *what.function);
}

}  // namespace gmt::preload

// ---- Exported functions -------------------------------------------------------------------------

#define GMT_EXPORT_RUNTIME(slot, suffix, node, name, parameters, arguments) \
  GMT_EXPORT cudaError_t gmt_##name##_##suffix parameters {                 \
    return gmt::preload::Hook_##name<slot> arguments;                       \
  }                                                                         \
  GMT_VERSIONED(name, suffix, node)

#define GMT_RUNTIME(name, parameters, arguments, event) \
  GMT_FOR_EACH_RUNTIME(GMT_EXPORT_RUNTIME, name, parameters, arguments)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  GMT_EXPORT CUresult name parameters { return gmt::preload::Hook_##name<0> arguments; }
#include "preload/hooks/hook_table.inc"
