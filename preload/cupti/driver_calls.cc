#include "preload/cupti/driver_calls.h"

#include <cuda.h>
#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <atomic>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "preload/hooks/traced_call.h"
#include "preload/routes/route.h"

namespace gmt::preload {
namespace {

enum Api : ApiId {
  kNoApi = 0,
#define GMT_RUNTIME(name, parameters, arguments, event) kApi_##name,
#define GMT_DRIVER(name, query, version, parameters, arguments, event) kApi_##name,
#include "preload/hooks/hook_table.inc"
};

// ---- Calls in progress --------------------------------------------------------------------------

// Bytes for the largest span, that of calls that end many things.
constexpr size_t kSpanBytes = 2304, kWhatBytes = 160;

// A call whose beginning has been reported.
struct Pending {
  std::atomic<const ThreadState*> thread;  // nullptr: free
  Process* process;
  uint32_t recording;
  void (*end)(Pending* pending, uint32_t result);
  alignas(16) unsigned char what[kWhatBytes];
  alignas(16) unsigned char span[kSpanBytes];
};

// State: `recording` says to which recording a call belongs.
//
// If more threads than this are inside such calls, further calls are recorded at a single moment.
constexpr uint32_t kMaxPending = 64;
constinit Pending pendings[kMaxPending] = {};
constinit std::atomic<bool> any_seen{false};

Pending* Claim() {
  const ThreadState* const self = &thread_state;
  for (Pending& pending :
       pendings) {  // reuses a slot of this thread: the end of its last call may never have been
                    // reported
    if (pending.thread.load(std::memory_order_relaxed) == self) return &pending;
  }
  for (Pending& pending : pendings) {
    const ThreadState* no_owner = nullptr;
    if (pending.thread.compare_exchange_strong(no_owner, self, std::memory_order_acquire))
      return &pending;
  }
  return nullptr;
}

Pending* Find(uint64_t number) {
  if (number == 0 || number > kMaxPending) return nullptr;
  Pending* const pending = &pendings[number - 1];
  return pending->thread.load(std::memory_order_relaxed) == &thread_state ? pending : nullptr;
}

template <typename What>
using SpanOf = decltype(OpenSpan(nullptr, 0, std::declval<const What&>()));

template <typename What>
void End(Pending* pending, uint32_t result) {
  using Span = SpanOf<What>;
  auto* const span = reinterpret_cast<Span*>(pending->span);
  ++thread_state.depth;  // matches the decrement by the span's Nesting
  if (const WriteGuard closing(pending->process, pending->recording); closing != nullptr)
    span->Finish(result);
  span->~Span();
}

// ---- Begin and end of a call --------------------------------------------------------------------

// Records a call at a single moment: an acquisition at its end, a return at its beginning.
template <typename What>
void RecordAtOnce(ApiId api, const What& what, uint32_t result) {
  const WriteGuard writing(SpanOf<What>::Wanted(what));
  if (writing == nullptr) return;
  auto span = OpenSpan(writing, api, what);
  span.Finish(result);
}

template <typename What>
constexpr bool kGives = std::is_same_v<What, Acquisition> || std::is_same_v<What, Reference> ||
                        std::is_same_v<What, Activity>;

template <typename What>
void Begin(ApiId api, const What& what, const DriverCall& call) {
  static_assert(sizeof(What) <= kWhatBytes && sizeof(SpanOf<What>) <= kSpanBytes);
  Process* const process = SpanOf<What>::Wanted(what);
  WriteGuard opening(process);
  if (opening == nullptr) return;
  Pending* const pending = Claim();
  if (pending == nullptr) {
    opening.Leave();
    if (!kGives<What>) RecordAtOnce(api, what, 0);
    return;
  }
  pending->process = process;
  pending->recording = process->identity;
  pending->end = End<What>;
  auto* const kept = new (pending->what) What(what);  // a span may refer to it
  new (pending->span) SpanOf<What>(OpenSpan(process, api, *kept));
  --thread_state.depth;
  *call.scratch = static_cast<uint64_t>(pending - pendings) + 1;
}

template <typename What>
void Finish(ApiId api, const What& what, const DriverCall& call, uint32_t result) {
  Pending* const pending = Find(*call.scratch);
  if (pending != nullptr) {
    pending->end(pending, result);
    pending->thread.store(nullptr, std::memory_order_release);
  } else if (kGives<What>) {
    RecordAtOnce(api, what, result);  // it began before the subscription, or found no free slot
  }
  *call.scratch = 0;
}

// The effect of a graph node is described by its parameters.
template <typename Go>
void OfNode(const NodeAddition& what, Go go) {
  CUgraphNodeParams* const node = what.parameters;
  if (node == nullptr) return;
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    go(Allocates(Memory::kGraph, &node->alloc.dptr, node->alloc.bytesize));
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) go(Frees(Memory::kGraph, node->free.dptr));
}

template <typename What, typename Go>
void WithEvent(const What& what, Go go) {
  if constexpr (std::is_same_v<What, NodeAddition>) {
    OfNode(what, go);
  } else {
    go(what);
  }
}

// ---- Selection of calls -------------------------------------------------------------------------

template <typename What>
constexpr bool IsOfMemory(std::string_view name) {
  if (std::is_same_v<What, Activity>) return name.starts_with("cuMemPool");
  return std::is_same_v<What, Acquisition> || std::is_same_v<What, Return> ||
         std::is_same_v<What, ReturnOfMany> || std::is_same_v<What, Reference> ||
         std::is_same_v<What, NodeAddition> || std::is_same_v<What, ContextEnd>;
}

// Calls use(api, what) for the function with that id; `what` describes what the call does.
#define GMT_NAMES(...) __VA_ARGS__
#define GMT_BIND(Parameters, ...) \
  __VA_OPT__([[maybe_unused]] const auto& [__VA_ARGS__] = *static_cast<const Parameters*>(data);)
#define GMT_RUNTIME(name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  [[maybe_unused]] inline auto Describe_##name(const void* data) {     \
    [[maybe_unused]] const void* const caller = nullptr;               \
    static_cast<void>(data);                                           \
    GMT_BIND(name##_params, GMT_NAMES arguments)                       \
    return event;                                                      \
  }                                                                    \
  constexpr bool kWants_##name = IsOfMemory<decltype(Describe_##name(nullptr))>(#name);
#include "preload/hooks/hook_table.inc"

template <typename Use>
void WithCall(const DriverCall& call, Use use) {
  switch (call.id) {
#define GMT_RUNTIME(name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event)                  \
  case CUPTI_DRIVER_TRACE_CBID_##name:                                                  \
    if constexpr (kWants_##name) {                                                      \
      WithEvent(Describe_##name(call.data),                                             \
                [&](const auto& what) { use(static_cast<ApiId>(kApi_##name), what); }); \
    }                                                                                   \
    return;
#include "preload/hooks/hook_table.inc"
    default:
      return;
  }
}

constexpr uint32_t kIds[] = {
#define GMT_RUNTIME(name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  kWants_##name ? uint32_t{CUPTI_DRIVER_TRACE_CBID_##name} : 0,
#include "preload/hooks/hook_table.inc"
};

// Returns whether to record the call here: it is not inside a hook, and CUPTI provides the
// necessary data.
bool IsOurs(const DriverCall& call) {
  return thread_state.depth == 0 && call.data != nullptr && call.scratch != nullptr;
}

}  // namespace

bool AnyDriverCallSeen() { return any_seen.load(std::memory_order_relaxed); }

bool WantsDriverCalls() { return RouteTaken() == Route::kAttach; }

uint32_t DriverCallId(int n) {
  for (const uint32_t id : kIds) {
    if (id != 0 && n-- == 0) return id;
  }
  return 0;
}

void ForgetDriverCalls() {
  for (Pending& pending : pendings) pending.thread.store(nullptr, std::memory_order_release);
}

void OnDriverCallBegin(const DriverCall& call) {
  if (!IsOurs(call)) return;
  const KeepErrno keep;
  any_seen.store(true, std::memory_order_relaxed);
  WithCall(call, [&](ApiId api, const auto& what) { Begin(api, what, call); });
}

void OnDriverCallEnd(const DriverCall& call, uint32_t result) {
  if (!IsOurs(call)) return;
  const KeepErrno keep;
  WithCall(call, [&](ApiId api, const auto& what) { Finish(api, what, call, result); });
}

}  // namespace gmt::preload
