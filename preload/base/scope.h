// preload/base/scope.h
//
// Scope: a hooked call that C++ exceptions may leave. The scopes of a thread form a list, innermost
// first, of objects on its stack. This library is built without exceptions and without the C++
// runtime, so a function that opens a scope has no landing pad. Instead it names its own
// personality routine. The unwinder calls that when it passes the frame, and the routine closes the
// scope.
//
//   [[gnu::noinline]] Result CallInScope(...) {
//     GMT_CLOSES_SCOPE_WHEN_UNWOUND;  // in a function that opens exactly one scope, for one call
//     Scope scope = {...};
//     OpenScope(&scope);
//     Result result = real(...);
//     CloseScope(&scope);
//     return result;
//   }
//
// Thread safety: a scope belongs to its thread.
// Source of the protocol: Itanium C++ ABI, exception handling, level I (personality routines).

#ifndef GMT_PRELOAD_BASE_SCOPE_H_
#define GMT_PRELOAD_BASE_SCOPE_H_

#include "preload/base/thread_state.h"

namespace gmt::preload {

struct Scope {
  Scope* outer;
  void (*at_end)(Scope* scope);  // nullptr: nothing to do
  // A node of PyTorch's autograd graph whose backward pass runs here; nullptr: none.
  const void* node;
  uint64_t range;  // number of the range that this call is
};

inline void OpenScope(Scope* scope) {
  scope->outer = thread_state.scope;
  thread_state.scope = scope;
}

inline void CloseScope(Scope* scope) {
  thread_state.scope = scope->outer;
  if (scope->at_end != nullptr) scope->at_end(scope);
}

// Encoding 0x1b: relative to its own place, 4 bytes.
#define GMT_CLOSES_SCOPE_WHEN_UNWOUND \
  asm volatile(".cfi_personality 0x1b, gmt_close_scope_when_unwound")

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_SCOPE_H_
