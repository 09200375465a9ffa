// The transitions of Process (preload/process/process.h): from idle to recording or dormant, and
// between these two when a client attaches or detaches.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/keep_errno.h"
#include "preload/base/thread_state.h"
#include "preload/lifecycle/attach.h"
#include "preload/lifecycle/before_attach.h"
#include "preload/lifecycle/start.h"
#include "preload/nvtx/injection.h"
#include "preload/process/process.h"
#include "preload/process/write_guard.h"
#include "preload/record/cupti_attention.h"
#include "preload/record/early_streams.h"
#include "preload/record/record_source.h"
#include "preload/routes/route.h"

namespace gmt::preload {
namespace {

constexpr int kWaitSteps = 2000;  // milliseconds

// Records when interception began, if that was after the start of the process.
[[gnu::noinline]] void RecordRoute(Process* p) {
  char text[1024];
  if (DescribeLateRoute(text, sizeof(text))) RecordSource(p, "calls", text);
}

}  // namespace

Process* Process::StartOrWait() {
  Process* p = Here();
  uint32_t seen = p->status.load(std::memory_order_acquire);
  if (seen != kIdle && seen != kStarting) return seen == kRecording ? p : nullptr;
  if (seen == kIdle) WipeInForkChild();
  const uint32_t self = static_cast<uint32_t>(syscall(SYS_gettid));
  if (seen == kIdle && p->status.compare_exchange_strong(seen, kStarting)) {
    p->starter.store(self, std::memory_order_relaxed);
    return Start(p);
  }
  for (int step = 0; seen == kStarting && step < kWaitSteps; ++step) {
    // A signal handler on the starting thread would wait for itself.
    if (p->starter.load(std::memory_order_relaxed) == self) break;
    const timespec millisecond = {0, 1000000};
    syscall(SYS_nanosleep, &millisecond, nullptr);  // not a cancellation point
    seen = p->status.load(std::memory_order_acquire);
  }
  if (seen == kRecording) return p;
  if (seen == kStarting) CountOrDefer(session::kBeforeSession);
  return nullptr;
}

Process* Process::Start(Process* p) {
  const Nesting nesting;
  p->attach_gate.Close();
  p->ResetForRecording(0);
  const Begun begun = StartSession(p);
  if (begun == Begun::kDormant) {
    p->WatchAttachGate();
  } else {
    p->WatchHeaps(begun == Begun::kRecording ? p->options.heaps : 0);
  }
  p->status.store(begun == Begun::kRecording ? kRecording
                  : begun == Begun::kDormant ? kDormant
                                             : kOff);
  if (begun != Begun::kRecording) return nullptr;
  p->RecordInitialEvents(p->identity);
  return p;
}

Process* Process::MakeAttachable() {
  StartOrWait();
  Process* p = Here();
  const uint32_t status = p->status.load(std::memory_order_acquire);
  return status == kIdle || status == kStarting || status == kOff ? nullptr : p;
}

Process* Process::SwitchRecording(Process* p) {
  const KeepErrno keep;
  uint32_t status = p->status.load(std::memory_order_acquire);
  if (status == kSwitching || !p->status.compare_exchange_strong(status, kSwitching))
    return nullptr;
  const Nesting nesting;
  if (status != kDormant) {
    p->status.store(EndAttach(p, status == kRecording));
    return nullptr;
  }
  const Status now = BeginAttach(p);
  const uint32_t recording = p->identity;
  p->status.store(now);  // from here on other threads may end it and begin the next
  if (now != kRecording) return nullptr;
  p->RecordInitialEvents(recording);
  return p;
}

void Process::RecordInitialEvents(uint32_t recording) {
  if (const WriteGuard p(this, recording); p != nullptr) {
    p->FlushDeferredCounts();
    RecordEarlyStreams(p);
    RecordNvtxState(p);
  }
  BeginCuptiEarly(this);
  if (const WriteGuard p(this, recording); p != nullptr) {
    RecordRoute(p);
    if (attach_gate.is_open) RecordPriorAllocations(p);
  }
}

}  // namespace gmt::preload
