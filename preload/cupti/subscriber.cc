#include "preload/cupti/subscriber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/base/clock.h"
#include "preload/base/on_exit.h"
#include "preload/base/own_stack.h"
#include "preload/base/thread_state.h"
#include "preload/cupti/activities.h"
#include "preload/cupti/callbacks.h"
#include "preload/cupti/driver_calls.h"
#include "preload/cupti/find_cupti.h"
#include "preload/cupti/timed_lock.h"
#include "preload/loader/loader.h"
#include "preload/process/write_guard.h"
#include "preload/record/record_event.h"
#include "preload/record/record_source.h"

namespace gmt::preload {

// Cache: a hint. AttendToCupti() checks `begun_by`.
constinit std::atomic<bool> cupti_wants_attention{false};

namespace {

enum class Holder : uint32_t { kNotBegun, kOurs, kAnothers, kOffForGood };

constexpr uint32_t kChangeMs = 2000;
// libcupti and the driver below it run on a stack that this library provides.
constexpr size_t kStack = 4 << 20;
constexpr size_t kName = 128;
constexpr uint32_t kWithMultipleSubscribers = 130200;  // compared with cuptiGetVersion

// State: `begun_by` says to which process it belongs; IsInherited() checks it.
constinit TimedLock changing;
constinit std::atomic<Holder> holder{Holder::kNotBegun};
constinit std::atomic<uint64_t> free_since_ns{0};  // 0: not free
constinit std::atomic<uint32_t> begun_by{0};       // Process::identity
constinit CuptiLibrary library = {};               // this and the following are guarded by
                                                   // `changing`
constinit bool library_found = false;
constinit CUpti_SubscriberHandle subscriber = nullptr;
constinit char anothers_name[kName] = {};
constinit bool exit_is_watched = false;

// For a CUPTI that no tool has had, and that will stay off.
void NoteOff(Process* p, const char* status) { SetSourceStatus(p, session::kCuptiSource, status); }

void RecordStatus(Process* p, const char* status) {
  RecordSource(p, session::kCuptiSource, "cupti", status);
}

void RecordTaken(Process* p, const char* by) {
  char status[kName + 32];
  snprintf(status, sizeof(status), "off: taken by %s", by);
  RecordStatus(p, status);
}

bool IsFull(const Process& p) { return p.options.cupti == session::Cupti::kFull; }

// ---- Ours ---------------------------------------------------------------------------------------

CUptiResult Subscribe(char* old_name, size_t capacity) {
  old_name[0] = '\0';
  if (library.Subscribe_v2 == nullptr) return library.Subscribe(&subscriber, OnCallback, nullptr);
  CUpti_SubscriberParams params;
  memset(&params, 0, sizeof(params));
  // No sharing: other tools do not share, so it would not last, and a subscriber that shares may
  // not finalize CUPTI.
  params.structSize = library.version >= kWithMultipleSubscribers
                          ? CUpti_SubscriberParams_STRUCT_SIZE
                          : offsetof(CUpti_SubscriberParams, allowMultipleSubscribers);
  params.subscriberName = "gpumemtrace";
  params.oldSubscriberName = old_name;
  params.oldSubscriberSize = capacity;
  return library.Subscribe_v2(&subscriber, OnCallback, nullptr, &params);
}

void NoteRefused(Process* p, CUptiResult error, const char* old_name) {
  if (error == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
      error == CUPTI_ERROR_MAX_LIMIT_REACHED) {
    return RecordTaken(p, old_name[0] == '\0' ? "another tool" : old_name);
  }
  const char* meaning = nullptr;
  if (library.GetResultString == nullptr ||
      library.GetResultString(error, &meaning) != CUPTI_SUCCESS || meaning == nullptr) {
    meaning = "";
  }
  char status[256];
  snprintf(status, sizeof(status), "off: %s refused with error %d%s%s%s", library.name, error,
           meaning[0] == '\0' ? "" : " ", meaning,
           error == CUPTI_ERROR_UNKNOWN           ? ", as it does without a driver"
           : error == CUPTI_ERROR_NOT_INITIALIZED ? ", as it does if the driver is too old for it"
                                                  : "");
  NoteOff(p, status);
}

void RecordOn(Process* p) {
  const bool full = IsFull(*p);
  char status[160];
  snprintf(status, sizeof(status), "on: streams, contexts, modules, graphs, synchronisation%s%s",
           full ? ", copies, memory" : "",
           WantsDriverCalls() ? ", driver calls that bypass the hooks" : "");
  RecordStatus(p, status);
  if (!full) return;
  char bytes[64];
  snprintf(bytes, sizeof(bytes), "%llu bytes in each context",
           static_cast<unsigned long long>(CuptiDeviceBytes(library)));
  RecordSource(p, "cupti device memory", bytes);
}

// Retrieves what CUPTI still holds when the process ends. Registered after libcupti was loaded, so
// that it runs before libcupti's own exit handler.
void GiveUpAtExit(int, void*) {
  const WriteGuard p(Process::IfRecording());
  if (p == nullptr || begun_by.load() != p->identity) return;
  const TimedLockGuard timed_lock(&changing, kChangeMs);
  if (!timed_lock || holder.load() != Holder::kOurs) return;
  const Nesting nesting;
  DisableActivities(library);
  holder.store(Holder::kOffForGood);
}

// REQUIRES: `changing` is held.
void Take(Process* p) {
  char old_name[kName];
  CUptiResult result = Subscribe(old_name, sizeof(old_name));
  const bool subscribed = result == CUPTI_SUCCESS;
  if (subscribed) {
    holder.store(Holder::kOurs, std::memory_order_release);
    result = EnableCallbacks(library, subscriber);
  }
  if (result == CUPTI_SUCCESS && IsFull(*p)) result = EnableActivities(library);
  if (result == CUPTI_SUCCESS) return RecordOn(p);
  holder.store(Holder::kOffForGood, std::memory_order_release);
  if (subscribed) library.Unsubscribe(subscriber);
  NoteRefused(p, result, old_name);
}

bool Find(Process* p) {
  if (library_found) return true;
  char reason[256];
  library_found = FindCupti(&library, reason, sizeof(reason));
  if (!library_found) {
    char status[384];
    snprintf(status, sizeof(status),
             "off: %s (streams, events and synchronisation by interposition)", reason);
    NoteOff(p, status);
  }
  return library_found;
}

// Also called if another tool has had CUPTI from the start and has gone.
void Begin(Process* p) {
  begun_by.store(p->identity);
  if (p->options.cupti == session::Cupti::kOff) {
    holder.store(Holder::kOffForGood);
    return NoteOff(p, "off: by option");
  }
  if (!Find(p)) return holder.store(Holder::kOffForGood);
  if (IsFull(*p)) {
    PrepareActivities(library);
    if (!exit_is_watched) exit_is_watched = on_exit(GiveUpAtExit, nullptr) == 0;
  }
  Take(p);
}

bool IsFree() { return free_since_ns.load() != 0; }
bool HasSettled() { return IsFree() && NowNs() - free_since_ns.load() >= kSettleNs; }

// REQUIRES: `changing` is held.
void Attend(void* argument) {
  const Holder now = holder.load();
  if (now != Holder::kNotBegun && !(now == Holder::kAnothers && HasSettled())) return;
  Begin(static_cast<Process*>(argument));
  free_since_ns.store(0);  // not earlier: a thread that yields would assume that another tool still
                           // has it
}

void AttendNow(Process* process) {
  const KeepErrno keep;
  const TimedLockGuard timed_lock(&changing, 0);
  const WriteGuard p(process);
  if (!timed_lock || p == nullptr) return;
  cupti_wants_attention.store(false, std::memory_order_relaxed);
  const Nesting nesting;
  RunOnOwnStack(Attend, process, kStack);
}

// Returns whether this is a fork child of a process that had begun; CUPTI does not work here.
bool IsInherited(const Process& p) {
  const uint32_t begun = begun_by.load();
  return begun != 0 && begun != p.identity;
}

// REQUIRES: `changing` is held.
void Unsubscribe(void*) {
  DisableActivities(library);
  library.Unsubscribe(subscriber);
}

}  // namespace

void AttendToCupti(Process* process) {
  const WriteGuard p(process);
  if (p == nullptr) return;
  if (thread_state.depth > 1) return;  // inside another hooked call, or a callback
  const Holder now = holder.load(std::memory_order_acquire);
  if (IsInherited(*p)) {
    begun_by.store(p->identity);
    holder.store(Holder::kOffForGood);
    cupti_wants_attention.store(false, std::memory_order_relaxed);
    return NoteOff(p, "off: it was begun before the fork");
  }
  if (now == Holder::kNotBegun || HasSettled()) return AttendNow(p);
  if (now == Holder::kAnothers && IsFree()) return;  // not yet
  cupti_wants_attention.store(false, std::memory_order_relaxed);
  if (now == Holder::kAnothers && begun_by.exchange(p->identity) == 0)
    RecordTaken(p, anothers_name);
}

// A refused attempt is likely to be refused again, but the next recording may have other options.
bool EndCupti(Process* p, uint32_t patience_ms) {
  const KeepErrno keep;
  const Nesting nesting;
  const TimedLockGuard timed_lock(&changing, patience_ms);
  cupti_wants_attention.store(false, std::memory_order_relaxed);
  if (!timed_lock) return false;
  if (begun_by.load() != p->identity) return true;
  if (holder.load() == Holder::kOurs && !RunOnOwnStack(Unsubscribe, nullptr, kStack)) return false;
  if (holder.load() != Holder::kAnothers) holder.store(Holder::kNotBegun);
  begun_by.store(0);
  return true;
}

// Not before the driver is loaded: a libcupti that looks for the driver itself may not find it
// where the program's libraries do.
void BeginCuptiEarly(Process* p) {
  if (!IsFull(*p) && !WantsDriverCalls()) return;
  if (IsInherited(*p) || holder.load() != Holder::kNotBegun) return;
  if (AnyLibraryIsNamed("libcuda.so")) AttendNow(p);
}

const CuptiLibrary* OurCupti() {
  return holder.load(std::memory_order_acquire) == Holder::kOurs ? &library : nullptr;
}

bool ChangingCupti() { return changing.IsMine(); }

void YieldCupti(const char* to) {
  if (holder.load(std::memory_order_acquire) == Holder::kAnothers && !IsFree()) return;
  const KeepErrno keep;
  const Nesting nesting;
  const TimedLockGuard timed_lock(&changing, kChangeMs);
  if (!timed_lock) return;
  free_since_ns.store(0);
  const Holder before = holder.load(std::memory_order_acquire);
  if (before == Holder::kOffForGood) return;
  snprintf(anothers_name, sizeof(anothers_name), "%s", to);
  holder.store(Holder::kAnothers, std::memory_order_release);
  const WriteGuard p(Process::IfRecording());
  if (p == nullptr || IsInherited(*p)) return;
  if (before == Holder::kOurs) {
    DisableActivities(library);
    library.Unsubscribe(subscriber);
  }
  RecordTaken(p, to);
}

void CuptiIsFree(bool finalised) {
  if (finalised) ForgetForeignBuffers();
  if (holder.load(std::memory_order_acquire) != Holder::kAnothers) return;
  const KeepErrno keep;
  const bool was_free = free_since_ns.exchange(NowNs()) != 0;
  cupti_wants_attention.store(true, std::memory_order_relaxed);
  if (const WriteGuard p(Process::IfRecording()); p != nullptr && !was_free) {
    char status[kName + 32];
    snprintf(status, sizeof(status), "off: given back by %s", anothers_name);
    RecordStatus(p, status);
  }
}

}  // namespace gmt::preload
