// preload/cupti/callbacks.h
//
// What CUPTI tells while it happens, on the thread that does it: streams, contexts, modules and graphs
// that come and go, and waits that have ended.
//
// A hook knows more of what it sees: the call's name, its duration, its result. So a callback inside a
// hooked call adds only what that call's event does not say: a module, a graph, or, where the call is
// an allocation or a free, that it waited.
//
// Calls of the driver itself are asked for where this library came late (preload/cupti/driver_calls.h).
//
// Cost: callbacks are asked for one by one, and come with rare calls; those that come with every node
// of a graph or every launch are not asked for.

#ifndef GMT_PRELOAD_CUPTI_CALLBACKS_H_
#define GMT_PRELOAD_CUPTI_CALLBACKS_H_

#include "preload/cupti/cupti_library.h"

namespace gmt::preload {

void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);

// Asks for the callbacks. The first error of those that CUPTI has for all; older libraries do not
// know some of them.
CUptiResult EnableCallbacks(const CuptiLibrary& library, CUpti_SubscriberHandle subscriber);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CALLBACKS_H_
