// preload/cupti/callbacks.h
//
// What CUPTI reports immediately, on the thread concerned: creation and destruction of streams,
// contexts, modules and graphs, and the ends of waits.
//
// A hook knows more about the calls it sees: name, duration and result. A callback inside a hooked
// call therefore adds only what that call's event lacks: a module, a graph or, if the call is an
// allocation or a free, that it waited.
//
// Callbacks for driver calls are enabled if this library was loaded late
// (preload/cupti/driver_calls.h).
//
// Cost: callbacks are enabled one by one, and only for rare calls, not for those that occur with
// every graph node or every launch.

#ifndef GMT_PRELOAD_CUPTI_CALLBACKS_H_
#define GMT_PRELOAD_CUPTI_CALLBACKS_H_

#include "preload/cupti/cupti_library.h"

namespace gmt::preload {

void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);

// Enables the callbacks. Returns the first error among those that every CUPTI version has; older
// libraries lack some of the others.
CUptiResult EnableCallbacks(const CuptiLibrary& library, CUpti_SubscriberHandle subscriber);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CALLBACKS_H_
