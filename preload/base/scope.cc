#include "preload/base/scope.h"

#include <unwind.h>

// An exception passes twice: first during the search for a handler, then while the stack is unwound
// to it.
extern "C" __attribute__((visibility("hidden"), used)) _Unwind_Reason_Code
gmt_close_scope_when_unwound(int, _Unwind_Action actions, _Unwind_Exception_Class,
                             _Unwind_Exception*, _Unwind_Context*) {
  if ((actions & _UA_CLEANUP_PHASE) != 0)
    gmt::preload::CloseScope(gmt::preload::thread_state.scope);
  return _URC_CONTINUE_UNWIND;
}
