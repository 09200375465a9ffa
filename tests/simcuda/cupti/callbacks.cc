// The callback API: one subscriber, and the domains of calls, resources and synchronisation.
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/simcuda/cupti/names.h"
#include "tests/simcuda/cupti/session.h"

namespace {
constexpr size_t kMaxIds = 1024;  // per domain
}

struct CUpti_Subscriber_st {
  CUpti_CallbackFunc function = nullptr;
  void* data = nullptr;
  std::string name;
  bool shares = false;  // allows other subscribers
  std::array<std::bitset<kMaxIds>, CUPTI_CB_DOMAIN_SIZE> enabled;
};

namespace sim {
namespace {

using Subscribers = std::vector<CUpti_Subscriber_st*>;

Subscribers& TheSubscribers() {
  static Subscribers& subscribers = *new Subscribers;
  return subscribers;
}

// REQUIRES: CuptiMutex() is held.
bool Known(CUpti_SubscriberHandle handle) {
  return std::find(TheSubscribers().begin(), TheSubscribers().end(), handle) !=
         TheSubscribers().end();
}

CUptiResult Subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* data,
                      const char* name, bool shares, char* old_name, size_t old_name_size) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (handle == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard<std::mutex> lock(CuptiMutex());
  for (const CUpti_Subscriber_st* other : TheSubscribers()) {
    if (shares && other->shares) continue;
    if (old_name != nullptr && old_name_size > 0) {
      std::snprintf(old_name, old_name_size, "%s", other->name.c_str());
    }
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  auto made = new CUpti_Subscriber_st{
      .function = function, .data = data, .name = name != nullptr ? name : "", .shares = shares};
  TheSubscribers().push_back(made);
  if (!UpdateAttachment()) {
    TheSubscribers().pop_back();
    delete made;
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *handle = made;
  return CUPTI_SUCCESS;
}

bool ValidDomain(CUpti_CallbackDomain domain) {
  return domain > CUPTI_CB_DOMAIN_INVALID && domain < CUPTI_CB_DOMAIN_SIZE;
}

// Runs `body` with an existing subscriber, under the lock.
template <typename Body>
CUptiResult WithSubscriber(CUpti_SubscriberHandle handle, Body body) {
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  std::lock_guard<std::mutex> lock(CuptiMutex());
  if (!Known(handle)) return CUPTI_ERROR_INVALID_PARAMETER;
  return body(*handle);
}

// Calls every subscriber that enabled the callback. They may unsubscribe, or end CUPTI, from
// within.
void Call(CUpti_CallbackDomain domain, uint32_t id, const void* data) {
  if (id == 0 || id >= kMaxIds) return;
  struct Target {
    CUpti_CallbackFunc function;
    void* data;
  };
  std::vector<Target> targets;
  {
    std::lock_guard<std::mutex> lock(CuptiMutex());
    for (const CUpti_Subscriber_st* subscriber : TheSubscribers()) {
      if (subscriber->function != nullptr && subscriber->enabled[domain][id]) {
        targets.push_back({subscriber->function, subscriber->data});
      }
    }
  }
  for (const Target& target : targets) target.function(target.data, domain, id, data);
}

void CallOfApi(const Notice& notice) {
  CUpti_CallbackData data{};
  data.callbackSite = notice.kind == NoticeKind::kApiEnter ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionName = notice.name;
  data.functionParams = notice.arguments;
  data.functionReturnValue = const_cast<void*>(notice.result);
  data.context = notice.context;
  data.contextUid = notice.context_id;
  data.correlationData = notice.scratch;
  data.correlationId = notice.correlation;
  if (notice.runtime) {
    Call(CUPTI_CB_DOMAIN_RUNTIME_API, RuntimeFunctionId(notice.name), &data);
  } else {
    Call(CUPTI_CB_DOMAIN_DRIVER_API, DriverFunctionId(notice.name), &data);
  }
}

void CallOfResource(const Notice& notice, CUpti_CallbackIdResource id, void* descriptor) {
  CUpti_ResourceData data{};
  data.context = notice.context;
  data.resourceHandle.stream = notice.stream;
  data.resourceDescriptor = descriptor;
  Call(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

void CallOfModule(const Notice& notice, CUpti_CallbackIdResource id) {
  CUpti_ModuleResourceData module{};
  module.moduleId = notice.module_id;
  module.cubinSize = notice.image_size;
  module.pCubin = static_cast<const char*>(notice.image);
  CallOfResource(notice, id, &module);
}

void CallOfGraph(const Notice& notice, CUpti_CallbackIdResource id) {
  CUpti_GraphData graph{};
  graph.graph = notice.graph;
  graph.graphExec = notice.executable;
  CallOfResource(notice, id, &graph);
}

void CallOfSynchronization(const Notice& notice, CUpti_CallbackIdSync id) {
  CUpti_SynchronizeData data{};
  data.context = notice.context;
  data.stream = notice.stream;
  Call(CUPTI_CB_DOMAIN_SYNCHRONIZE, id, &data);
}

}  // namespace

bool AnyCallCallback() {
  return std::any_of(TheSubscribers().begin(), TheSubscribers().end(), [](const auto* subscriber) {
    return subscriber->enabled[CUPTI_CB_DOMAIN_DRIVER_API].any() ||
           subscriber->enabled[CUPTI_CB_DOMAIN_RUNTIME_API].any();
  });
}

bool AnySubscriber() { return !TheSubscribers().empty(); }

void ForgetSubscribers() {
  for (CUpti_Subscriber_st* subscriber : TheSubscribers()) delete subscriber;
  TheSubscribers().clear();
}

void Callback(const Notice& notice) {
  switch (notice.kind) {
    case NoticeKind::kApiEnter:
    case NoticeKind::kApiExit:
      return CallOfApi(notice);
    case NoticeKind::kInitialized:
      return CallOfResource(notice, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED, nullptr);
    case NoticeKind::kContextCreated:
      return CallOfResource(notice, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, nullptr);
    case NoticeKind::kContextDestroyStarting:
      return CallOfResource(notice, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, nullptr);
    case NoticeKind::kStreamCreated:
      return CallOfResource(notice, CUPTI_CBID_RESOURCE_STREAM_CREATED, nullptr);
    case NoticeKind::kStreamDestroyStarting:
      return CallOfResource(notice, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, nullptr);
    case NoticeKind::kModuleLoaded:
      return CallOfModule(notice, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    case NoticeKind::kModuleUnloadStarting:
      return CallOfModule(notice, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
    case NoticeKind::kGraphCreated:
      return CallOfGraph(notice, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
    case NoticeKind::kGraphDestroyStarting:
      return CallOfGraph(notice, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
    case NoticeKind::kGraphExecCreated:
      return CallOfGraph(notice, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
    case NoticeKind::kGraphExecDestroyStarting:
      return CallOfGraph(notice, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
    case NoticeKind::kStreamSynchronized:
      return CallOfSynchronization(notice, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED);
    case NoticeKind::kContextSynchronized:
      return CallOfSynchronization(notice, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED);
    default:
      return;  // for these there are only records
  }
}

}  // namespace sim

using sim::Refusal;
using sim::WithSubscriber;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* data) {
  return sim::Subscribe(subscriber, callback, data, nullptr, false, nullptr, 0);
}

#if SIMCUDA_CUPTI_VERSION >= 130000
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                              void* data, CUpti_SubscriberParams* parameters) {
  constexpr size_t kWithNames = offsetof(CUpti_SubscriberParams, allowMultipleSubscribers);
  constexpr size_t kNameRoom = 64;  // "size should be >= 64"
  if (parameters == nullptr) return Refusal() ? Refusal() : CUPTI_ERROR_INVALID_PARAMETER;
  bool named = parameters->structSize >= kWithNames;
  bool room =
      parameters->oldSubscriberName == nullptr || parameters->oldSubscriberSize >= kNameRoom;
  if (!named || !room) return Refusal() ? Refusal() : CUPTI_ERROR_INVALID_PARAMETER;
  bool shares = sim::CuptiSettings().cupti_multi && parameters->structSize > kWithNames &&
                parameters->allowMultipleSubscribers != 0;
  return sim::Subscribe(subscriber, callback, data, parameters->subscriberName, shares,
                        parameters->oldSubscriberName, parameters->oldSubscriberSize);
}
#endif

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  return WithSubscriber(handle, [&](CUpti_Subscriber_st&) {
    std::erase(sim::TheSubscribers(), handle);
    delete handle;
    sim::UpdateAttachment();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return WithSubscriber(handle, [&](CUpti_Subscriber_st& subscriber) {
    if (!sim::ValidDomain(domain) || id == 0 || id >= kMaxIds) return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber.enabled[domain][id] = enable != 0;
    sim::UpdateAttachment();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
                              CUpti_CallbackDomain domain) {
  return WithSubscriber(handle, [&](CUpti_Subscriber_st& subscriber) {
    if (!sim::ValidDomain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    enable != 0 ? subscriber.enabled[domain].set() : subscriber.enabled[domain].reset();
    sim::UpdateAttachment();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle) {
  return WithSubscriber(handle, [&](CUpti_Subscriber_st& subscriber) {
    for (auto& domain : subscriber.enabled) enable != 0 ? domain.set() : domain.reset();
    sim::UpdateAttachment();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle handle,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return WithSubscriber(handle, [&](CUpti_Subscriber_st& subscriber) {
    if (enable == nullptr || !sim::ValidDomain(domain) || id >= kMaxIds) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *enable = subscriber.enabled[domain][id];
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE};
  if (CUptiResult refusal = Refusal(); refusal != CUPTI_SUCCESS) return refusal;
  if (count == nullptr || table == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = std::size(domains);
  *table = domains;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  if (CUptiResult refusal = Refusal(false); refusal != CUPTI_SUCCESS) return refusal;
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* found = domain == CUPTI_CB_DOMAIN_DRIVER_API    ? sim::DriverFunctionName(id)
                      : domain == CUPTI_CB_DOMAIN_RUNTIME_API ? sim::RuntimeFunctionName(id)
                                                              : nullptr;
  if (found == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = found;
  return CUPTI_SUCCESS;
}
