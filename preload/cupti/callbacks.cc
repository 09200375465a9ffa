#include "preload/cupti/callbacks.h"

#include <string.h>

#include <atomic>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/cupti/activities.h"
#include "preload/cupti/driver_calls.h"
#include "preload/cupti/subscriber.h"
#include "preload/process/write_guard.h"
#include "preload/record/record_event.h"
#include "preload/record/record_stack.h"

namespace gmt::preload {
namespace {

using session::Action;
using session::Kind;

struct Wanted {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
};
constexpr Wanted kWanted[] = {
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPH_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPH_CLONED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING},
    {CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED},
    {CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED},
};

// The hooked call that surrounds a callback; kNone if there is none, or if it has no event of its
// own.
struct Around {
  bool hooked;
  Kind call;
};

template <typename T>
uint64_t Number(T handle) {
  return reinterpret_cast<uint64_t>(handle);
}

session::Record NewRecord(Process* p, Kind kind, Action action, CUcontext context) {
  session::Record r;
  r.kind = kind;
  r.action = action;
  r.flags = session::kSeenByCupti;
  r.thread = ThreadId(p->identity);
  r.time_ns = NowNs();
  if (context != nullptr) {
    const session::ContextTable::Found found = p->contexts.Find(Number(context));
    r.context = found.number;
    r.device = found.device;
  }
  return r;
}

void OnContext(Process* p, const CuptiLibrary& library, CUcontext context, Around around) {
  LearnContext(library, context);
  if (around.hooked) return;  // its event is recorded with the first recorded call in it
  uint32_t device = session::kNoDevice;
  if (library.GetDeviceId != nullptr && library.GetDeviceId(context, &device) != CUPTI_SUCCESS)
    device = session::kNoDevice;
  session::Record like = NewRecord(p, Kind::kContextCreate, Action::kNone, nullptr);
  like.stack = RecordStack(p);
  EnterContext(p, Number(context),
               device < session::kNoDevice ? static_cast<uint8_t>(device) : session::kNoDevice,
               like);
}

void OnStream(Process* p, const CuptiLibrary& library, const CUpti_ResourceData& data,
              Action action, Around around) {
  if (action == Action::kCreate) LearnStream(library, data.context, data.resourceHandle.stream);
  if (around.hooked) return;  // has its own event, or is a stream that only the call itself uses
  session::Record r = NewRecord(p, Kind::kStream, action, data.context);
  r.stream = Number(data.resourceHandle.stream);
  r.stack = RecordStack(p);
  CommitAlone(p, r);
}

void OnModule(Process* p, const CUpti_ResourceData& data, Action action) {
  if (data.resourceDescriptor == nullptr) return;
  const auto& module = *static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor);
  session::Record r = NewRecord(p, Kind::kModule, action, data.context);
  r.value = module.moduleId;
  r.size = module.cubinSize;
  if (action == Action::kLoad) r.stack = RecordStack(p);
  CommitAlone(p, r);
}

void OnGraph(Process* p, const CUpti_ResourceData& data, CUpti_CallbackId id) {
  if (data.resourceDescriptor == nullptr) return;
  const auto& graph = *static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
  const bool exec = id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED ||
                    id == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING;
  const bool ends = id == CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING ||
                    id == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING;
  const Action action = ends ? Action::kDestroy : exec ? Action::kInstantiate : Action::kCreate;
  session::Record r = NewRecord(p, Kind::kGraph, action, data.context);
  r.value = exec ? Number(graph.graphExec) : Number(graph.graph);
  CommitAlone(p, r);
}

void OnResource(Process* p, const CuptiLibrary& library, CUpti_CallbackId id,
                const CUpti_ResourceData& data, Around around) {
  switch (id) {
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
      return OnContext(p, library, data.context, around);
    case CUPTI_CBID_RESOURCE_STREAM_CREATED:
      return OnStream(p, library, data, Action::kCreate, around);
    case CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING:
      return OnStream(p, library, data, Action::kDestroy, around);
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
      return OnModule(p, data, Action::kLoad);
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
      return OnModule(p, data, Action::kUnload);
    default:
      return OnGraph(p, data, id);
  }
}

// Returns whether that call's event covers the wait.
bool RecordsWaits(Around around) {
  return around.call == Kind::kSync || (around.hooked && around.call == Kind::kNone);
}

void OnSynchronized(Process* p, const CuptiLibrary& library, CUpti_CallbackId id,
                    const CUpti_SynchronizeData& data, Around around) {
  const bool one_stream = id == CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED;
  if (one_stream) LearnStream(library, data.context, data.stream);
  if (RecordsWaits(around)) return;
  session::Record r =
      NewRecord(p, Kind::kSync, one_stream ? Action::kStream : Action::kDevice, data.context);
  if (one_stream) r.stream = Number(data.stream);
  if (around.hooked) r.flags |= session::kInsideCall;
  r.stack = RecordStack(p);
  RecordSyncLater(p, r);
}

// State: whether CUPTI reports all driver calls, and not only those that were enabled first; a
// child enables them again. Otherwise an allocation would be recorded whose release, a moment
// later, is not.
constinit std::atomic<bool> all_calls_enabled{false};

void OnDriverApi(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (!all_calls_enabled.load(std::memory_order_acquire)) return;
  const DriverCall call = {id, data.functionParams, data.correlationData};
  if (data.callbackSite == CUPTI_API_ENTER) return OnDriverCallBegin(call);
  uint32_t result = CUDA_SUCCESS;
  if (data.functionReturnValue != nullptr)
    memcpy(&result, data.functionReturnValue, sizeof(result));
  OnDriverCallEnd(call, result);
}

// A library that is older than a function rejects its number.
void EnableDriverCalls(const CuptiLibrary& library, CUpti_SubscriberHandle subscriber) {
  all_calls_enabled.store(false);
  ForgetDriverCalls();
  uint32_t id;
  for (int n = 0; (id = DriverCallId(n)) != 0; ++n)
    library.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  all_calls_enabled.store(true);
}

}  // namespace

void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                         const void* data) {
  // This may carry out attach and detach, which wait for writers, so it runs without a WriteGuard.
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && data != nullptr && OurCupti() != nullptr)
    return OnDriverApi(id, *static_cast<const CUpti_CallbackData*>(data));
  const WriteGuard p(Process::IfRecording());
  const CuptiLibrary* library = OurCupti();
  if (p == nullptr || library == nullptr || data == nullptr) return;
  const KeepErrno keep;
  const Around around = {thread_state.depth != 0, static_cast<Kind>(thread_state.call)};
  const Nesting nesting;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    OnResource(p, *library, id, *static_cast<const CUpti_ResourceData*>(data), around);
  } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
    OnSynchronized(p, *library, id, *static_cast<const CUpti_SynchronizeData*>(data), around);
  }
}

CUptiResult EnableCallbacks(const CuptiLibrary& library, CUpti_SubscriberHandle subscriber) {
  if (WantsDriverCalls()) EnableDriverCalls(library, subscriber);
  CUptiResult first = CUPTI_SUCCESS;
  for (const Wanted& wanted : kWanted) {
    const CUptiResult result = library.EnableCallback(1, subscriber, wanted.domain, wanted.id);
    const bool in_all = wanted.domain == CUPTI_CB_DOMAIN_SYNCHRONIZE ||
                        wanted.id < CUPTI_CBID_RESOURCE_GRAPH_CREATED;
    if (in_all && first == CUPTI_SUCCESS) first = result;
  }
  return first;
}

}  // namespace gmt::preload
