// preload/hooks/traced_call.h
//
// What a hooked call does: it either passes through to the real function, or runs inside a span
// that records it.

#ifndef GMT_PRELOAD_HOOKS_TRACED_CALL_H_
#define GMT_PRELOAD_HOOKS_TRACED_CALL_H_

#include <type_traits>

#include "preload/hooks/call_words.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/span.h"
#include "preload/hooks/span_of_many.h"
#include "preload/process/write_guard.h"
#include "preload/record/cupti_attention.h"
#include "preload/record/early_streams.h"

namespace gmt::preload {

inline AcquisitionSpan OpenSpan(Process* p, ApiId api, const Acquisition& what) {
  return {p, api, what};
}
inline ReturnSpan OpenSpan(Process* p, ApiId api, const Return& what) { return {p, api, what}; }
inline ReturnOfManySpan OpenSpan(Process* p, ApiId api, const ReturnOfMany& what) {
  return {p, api, what};
}
inline ActivitySpan OpenSpan(Process* p, ApiId api, const Activity& what) { return {p, api, what}; }
inline MeasurementSpan OpenSpan(Process* p, ApiId api, const Measurement& what) {
  return {p, api, what};
}
inline ContextStartSpan OpenSpan(Process* p, ApiId api, const ContextStart& what) {
  return {p, api, what};
}
inline ContextEndSpan OpenSpan(Process* p, ApiId api, const ContextEnd& what) {
  return {p, api, what};
}
inline ReferenceSpan OpenSpan(Process* p, ApiId api, const Reference& what) {
  return {p, api, what};
}

// Returns true if the call is not to be recorded. Costs two or three loads and no call. Nested
// calls pass through because they are part of the outermost call's event, and many calls concern
// heaps that are not recorded. `describe` returns what the call does. Calls that hand out function
// pointers never pass through, because the pointer may be used long after.
template <typename Describe>
__attribute__((always_inline)) inline bool PassesThrough(Describe describe) {
  using What = decltype(describe());
  if constexpr (std::is_same_v<What, HandingOut>) return false;
  uint32_t heaps = session::kDriverHeap;
  if constexpr (requires(What what) { what.memory; }) heaps = Process::HeapOf(describe().memory);
  // Stream activity determines when freed blocks can be reused.
  if constexpr (std::is_same_v<What, Activity>) heaps |= session::kPytorchHeap;
  return Process::Skips(heaps) || thread_state.depth != 0;
}

// Calls `real` and records it as `what`.
template <typename What, typename Result, typename... Arguments>
requires requires(Process* p, const What& what) { OpenSpan(p, 0, what); }
__attribute__((noinline)) Result Trace(ApiId api, const What& what, Result (*real)(Arguments...),
                                       Arguments... arguments) {
  Process* process = decltype(OpenSpan(nullptr, api, what))::Wanted(what);
  WriteGuard opening(process);
  if (opening == nullptr) {
    const Result result = real(arguments...);
    if constexpr (std::is_same_v<What, Activity>) {
      if (what.kind == Kind::kStream && static_cast<int>(result) == 0) KeepEarlyStream(api, what);
    }
    return result;
  }
  auto span = OpenSpan(process, api, what);
  const uint32_t recording = process->identity;
  opening.Leave();
  const Result result = real(arguments...);
  // Not in the recording of a later attach, whose tables lack what this span refers to.
  if (const WriteGuard closing(process, recording); closing != nullptr)
    span.Finish(static_cast<uint32_t>(result));
  GiveCuptiAttention(process);
  return result;
}

template <typename Result, typename... Arguments>
__attribute__((noinline)) Result Trace(ApiId, const HandingOut& what, Result (*real)(Arguments...),
                                       Arguments... arguments) {
  const Result result = real(arguments...);
  if (static_cast<int>(result) == 0) HandOutHook(what);
  return result;
}

template <typename Result, typename... Arguments>
Result Trace(ApiId api, const NodeAddition& what, Result (*real)(Arguments...),
             Arguments... arguments) {
  CUgraphNodeParams* const node = what.parameters;
  if (node != nullptr && node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    const Acquisition alloc = Allocates(Memory::kGraph, &node->alloc.dptr, node->alloc.bytesize);
    return Trace(api, alloc, real, arguments...);
  }
  if (node != nullptr && node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return Trace(api, Frees(Memory::kGraph, node->free.dptr), real, arguments...);
  return real(arguments...);  // not nested, so that the hooks of the driver calls inside can still
                              // record
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_TRACED_CALL_H_
