#include "preload/nvtx/hooks.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/thread_state.h"
#include "preload/nvtx/record_nvtx.h"
#include "preload/record/record_event.h"
#include "session/slice.h"

namespace gmt::preload {

// Cache: the other tool's functions.
constinit std::atomic<NvtxFunctionPointer> nvtx_next[kNvtxHooks] = {};

namespace {

#define GMT_NVTX(module, function, Result, parameters, arguments)                                 \
  using Type##function = Result(*) parameters;                                                    \
  Result function parameters;                                                                     \
  inline Type##function Next##function() {                                                        \
    return reinterpret_cast<Type##function>(                                                      \
        nvtx_next[static_cast<size_t>(NvtxHookId::k##function)].load(std::memory_order_relaxed)); \
  }
#include "preload/nvtx/hook_table.inc"

// ---- Marks --------------------------------------------------------------------------------------

template <typename Message>
void Mark(const void* domain, Message message) {
  const WriteGuard p = IfRecordingNvtx();
  if (p == nullptr) return;
  const KeepErrno keep;
  RecordNvtxMark(p, NvtxTables::DomainOf(domain), NvtxMessage(message));
}

void MarkEx(const nvtxEventAttributes_t* a) {
  Mark(nullptr, a);
  if (const auto next = NextMarkEx()) next(a);
}
void MarkA(const char* message) {
  Mark(nullptr, message);
  if (const auto next = NextMarkA()) next(message);
}
void MarkW(const wchar_t* message) {
  Mark(nullptr, message);
  if (const auto next = NextMarkW()) next(message);
}
void DomainMarkEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  Mark(d, a);
  if (const auto next = NextDomainMarkEx()) next(d, a);
}

// ---- Ranges that start in one place and end in another ------------------------------------------

// Marks ids of ranges that were started while nothing was recorded. No id of a session has this
// bit, because text ids are positions in a much smaller arena.
constexpr nvtxRangeId_t kUnrecorded = nvtxRangeId_t{1} << 63;

nvtxRangeId_t NewUnrecordedId() {
  static constinit std::atomic<uint64_t> last{0};
  return kUnrecorded | (last.fetch_add(1, std::memory_order_relaxed) + 1);
}

// `next` calls the other tool. If that returns an id, the program gets it.
template <typename Message, typename Next>
nvtxRangeId_t Start(const void* domain_handle, Message message, Next next) {
  nvtxRangeId_t id = next();
  const WriteGuard p = IfRecordingNvtx();
  if (p == nullptr) return id != 0 ? id : NewUnrecordedId();
  const KeepErrno keep;
  const NvtxMessage text(message);
  NvtxName* domain = NvtxTables::DomainOf(domain_handle);
  const uint64_t range = BeginNvtxRange(p, domain, TextId(p, text), text.color());
  if (id == 0) id = range;
  if (!p->nvtx.open_ranges.Put(id, range)) {  // otherwise its end would not be recognized
    EndNvtxRange(p, domain, range);
    p->Count(session::kActivitiesDropped);
  }
  return id;
}

void End(const void* domain, nvtxRangeId_t id) {
  const WriteGuard p = IfRecordingNvtx();
  uint64_t range;
  if (p == nullptr || !p->nvtx.open_ranges.Take(id, &range)) return;
  const KeepErrno keep;
  EndNvtxRange(p, NvtxTables::DomainOf(domain), range);
}

#define GMT_OR_ZERO(next, ...)             \
  [=] {                                    \
    const auto other = next();             \
    return other ? other(__VA_ARGS__) : 0; \
  }

nvtxRangeId_t RangeStartEx(const nvtxEventAttributes_t* a) {
  return Start(nullptr, a, GMT_OR_ZERO(NextRangeStartEx, a));
}
nvtxRangeId_t RangeStartA(const char* message) {
  return Start(nullptr, message, GMT_OR_ZERO(NextRangeStartA, message));
}
nvtxRangeId_t RangeStartW(const wchar_t* message) {
  return Start(nullptr, message, GMT_OR_ZERO(NextRangeStartW, message));
}
nvtxRangeId_t DomainRangeStartEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  return Start(d, a, GMT_OR_ZERO(NextDomainRangeStartEx, d, a));
}
void RangeEnd(nvtxRangeId_t id) {
  End(nullptr, id);
  if (const auto next = NextRangeEnd()) next(id);
}
void DomainRangeEnd(nvtxDomainHandle_t d, nvtxRangeId_t id) {
  End(d, id);
  if (const auto next = NextDomainRangeEnd()) next(d, id);
}

#undef GMT_OR_ZERO

// ---- Ranges that nest on a thread --------------------------------------------------------------

constexpr int kFailed = -1;

void KeepName(const NvtxMessage& message, PushedRange* pushed) {
  pushed->registered = message.registered();
  const std::string_view text = session::Slice(message.text(), 0, sizeof(pushed->name));
  pushed->name_size = static_cast<uint32_t>(text.size());
  memcpy(pushed->name, text.data(), text.size());
}

template <typename Message>
int Push(const void* domain_handle, Message message) {
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || Process::Skips(session::kNvtxHeap)) return NVTX_NO_PUSH_POP_TRACKING;
  const KeepErrno keep;
  const WriteGuard p(Process::IfRecording());
  PushStack* stack = tables->pushed.Mine();
  if (stack == nullptr) {
    if (p != nullptr) p->Count(session::kActivitiesDropped);
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  NvtxName* domain = NvtxTables::DomainOf(domain_handle);
  if (p != nullptr) RecordPushedRanges(p, stack);
  const int level = stack->LevelsOf(domain) + static_cast<int>(stack->beyond);
  PushedRange* pushed = stack->Push();
  if (pushed == nullptr) {
    if (p != nullptr) p->Count(session::kActivitiesDropped);
    return level;
  }
  const NvtxMessage text(message);
  pushed->domain = domain;
  pushed->color = text.color();
  pushed->range = 0;
  pushed->recorded_by = 0;
  KeepName(text, pushed);
  if (p == nullptr) return level;
  pushed->range = BeginNvtxRange(p, domain, TextId(p, text), text.color());
  pushed->recorded_by = p->identity;
  return level;
}

int Pop(const void* domain_handle) {
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || Process::Skips(session::kNvtxHeap)) return NVTX_NO_PUSH_POP_TRACKING;
  PushStack* stack = tables->pushed.MineIfAny();
  if (stack == nullptr) return kFailed;
  const KeepErrno keep;
  NvtxName* domain = NvtxTables::DomainOf(domain_handle);
  if (stack->beyond > 0) return stack->LevelsOf(domain) + static_cast<int>(--stack->beyond);
  const uint32_t place = stack->Innermost(domain);
  if (place == PushStack::kDepth) return kFailed;
  const WriteGuard p(Process::IfRecording());
  if (p != nullptr) RecordPushedRanges(p, stack);
  const PushedRange& pushed = stack->ranges[place];
  if (p != nullptr && pushed.recorded_by == p->identity) EndNvtxRange(p, domain, pushed.range);
  stack->Remove(place);
  return stack->LevelsOf(domain);
}

int RangePushEx(const nvtxEventAttributes_t* a) {
  const int level = Push(nullptr, a);
  const auto next = NextRangePushEx();
  return next != nullptr ? next(a) : level;
}
int RangePushA(const char* message) {
  const int level = Push(nullptr, message);
  const auto next = NextRangePushA();
  return next != nullptr ? next(message) : level;
}
int RangePushW(const wchar_t* message) {
  const int level = Push(nullptr, message);
  const auto next = NextRangePushW();
  return next != nullptr ? next(message) : level;
}
int DomainRangePushEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  const int level = Push(d, a);
  const auto next = NextDomainRangePushEx();
  return next != nullptr ? next(d, a) : level;
}
int RangePop() {
  const int level = Pop(nullptr);
  const auto next = NextRangePop();
  return next != nullptr ? next() : level;
}
int DomainRangePop(nvtxDomainHandle_t d) {
  const int level = Pop(d);
  const auto next = NextDomainRangePop();
  return next != nullptr ? next(d) : level;
}

// ---- Strings and domains -----------------------------------------------------------------------

// Returns the other tool's handle if it has one; otherwise a name of ours is the handle.
template <typename Handle, typename Text>
Handle Register(decltype(NvtxTables::strings) NvtxTables::*others, Text text,
                Handle others_handle) {
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || text == nullptr) return others_handle;
  const KeepErrno keep;
  NvtxName* name = tables->names.Enter(NvtxMessage(text).text());
  if (others_handle == nullptr) return reinterpret_cast<Handle>(name);
  (tables->*others)
      .Put(reinterpret_cast<uint64_t>(others_handle), reinterpret_cast<uint64_t>(name));
  return others_handle;
}

nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t d, const char* text) {
  const auto next = NextDomainRegisterStringA();
  return Register(&NvtxTables::strings, text, next != nullptr ? next(d, text) : nullptr);
}
nvtxStringHandle_t DomainRegisterStringW(nvtxDomainHandle_t d, const wchar_t* text) {
  const auto next = NextDomainRegisterStringW();
  return Register(&NvtxTables::strings, text, next != nullptr ? next(d, text) : nullptr);
}
nvtxDomainHandle_t DomainCreateA(const char* name) {
  const auto next = NextDomainCreateA();
  return Register(&NvtxTables::domains, name, next != nullptr ? next(name) : nullptr);
}
nvtxDomainHandle_t DomainCreateW(const wchar_t* name) {
  const auto next = NextDomainCreateW();
  return Register(&NvtxTables::domains, name, next != nullptr ? next(name) : nullptr);
}

// ---- Names of things ---------------------------------------------------------------------------

void Label(Labelled what, uint64_t number, const NvtxMessage& message) {
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || Process::Skips(session::kNvtxHeap)) return;
  const KeepErrno keep;
  const WriteGuard p(Process::IfRecording());
  if (p != nullptr) return RecordLabel(p, what, number, TextId(p, message));
  const auto pid = static_cast<uint32_t>(getpid());
  NvtxName* name =
      message.registered() != nullptr ? message.registered() : tables->names.Enter(message.text());
  tables->labels.Keep(what, number, name, pid);
  // A session may have been created meanwhile, before the label was stored.
  if (const WriteGuard now = IfRecordingNvtx(); now != nullptr) RecordKeptLabels(now);
}

template <typename Number, typename Text>
void LabelWith(Labelled what, Number number, Text text) {
  if (text != nullptr) Label(what, (uint64_t)number, NvtxMessage(text));
}

void NameOsThreadA(uint32_t thread, const char* name) {
  LabelWith(Labelled::kThread, thread, name);
  if (const auto next = NextNameOsThreadA()) next(thread, name);
}
void NameOsThreadW(uint32_t thread, const wchar_t* name) {
  LabelWith(Labelled::kThread, thread, name);
  if (const auto next = NextNameOsThreadW()) next(thread, name);
}
void NameCuDeviceA(CUdevice device, const char* name) {
  LabelWith(Labelled::kDevice, device, name);
  if (const auto next = NextNameCuDeviceA()) next(device, name);
}
void NameCuDeviceW(CUdevice device, const wchar_t* name) {
  LabelWith(Labelled::kDevice, device, name);
  if (const auto next = NextNameCuDeviceW()) next(device, name);
}
void NameCuStreamA(CUstream stream, const char* name) {
  LabelWith(Labelled::kStream, stream, name);
  if (const auto next = NextNameCuStreamA()) next(stream, name);
}
void NameCuStreamW(CUstream stream, const wchar_t* name) {
  LabelWith(Labelled::kStream, stream, name);
  if (const auto next = NextNameCuStreamW()) next(stream, name);
}
void NameCudaDeviceA(int device, const char* name) {
  LabelWith(Labelled::kDevice, device, name);
  if (const auto next = NextNameCudaDeviceA()) next(device, name);
}
void NameCudaDeviceW(int device, const wchar_t* name) {
  LabelWith(Labelled::kDevice, device, name);
  if (const auto next = NextNameCudaDeviceW()) next(device, name);
}
void NameCudaStreamA(cudaStream_t stream, const char* name) {
  LabelWith(Labelled::kStream, stream, name);
  if (const auto next = NextNameCudaStreamA()) next(stream, name);
}
void NameCudaStreamW(cudaStream_t stream, const wchar_t* name) {
  LabelWith(Labelled::kStream, stream, name);
  if (const auto next = NextNameCudaStreamW()) next(stream, name);
}

// Returns what kind of object a resource is, if its names are recorded.
Labelled KindOf(const nvtxResourceAttributes_t& a) {
  switch (a.identifierType) {
    case NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE:
      return Labelled::kThread;
    case NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX:
      // The tid of another thread's pthread_t is unknown.
      return pthread_equal(pthread_self(), a.identifier.ullValue) ? Labelled::kThread
                                                                  : Labelled::kNothing;
    case NVTX_RESOURCE_TYPE_CUDA_DEVICE:
    case NVTX_RESOURCE_TYPE_CUDART_DEVICE:
      return Labelled::kDevice;
    case NVTX_RESOURCE_TYPE_CUDA_STREAM:
    case NVTX_RESOURCE_TYPE_CUDART_STREAM:
      return Labelled::kStream;
    default:
      return Labelled::kNothing;
  }
}

uint64_t NumberOf(const nvtxResourceAttributes_t& a) {
  return a.identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX
             ? static_cast<uint64_t>(syscall(SYS_gettid))
             : a.identifier.ullValue;
}

nvtxResourceHandle_t DomainResourceCreate(nvtxDomainHandle_t d, nvtxResourceAttributes_t* a) {
  const auto next = NextDomainResourceCreate();
  const nvtxResourceHandle_t handle = next != nullptr ? next(d, a) : nullptr;
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || a == nullptr || a->size < sizeof(nvtxResourceAttributes_v0))
    return handle;
  if (const Labelled what = KindOf(*a); what != Labelled::kNothing)
    Label(what, NumberOf(*a), NvtxMessage(a->messageType, a->message));
  // Resources are only ever destroyed, so any non-null handle will do.
  return handle != nullptr ? handle : reinterpret_cast<nvtxResourceHandle_t>(&tables->labels);
}

}  // namespace

const NvtxHook kNvtxHookTable[kNvtxHooks] = {
#define GMT_NVTX(module, function, ...)                      \
  {NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##function, \
   reinterpret_cast<NvtxFunctionPointer>(function)},
#include "preload/nvtx/hook_table.inc"
};

}  // namespace gmt::preload
