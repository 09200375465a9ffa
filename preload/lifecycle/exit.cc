#include "preload/lifecycle/exit.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/message.h"
#include "preload/base/on_exit.h"
#include "preload/base/own_stack.h"
#include "preload/cupti/driver_calls.h"
#include "preload/hooks/hook.h"
#include "preload/lifecycle/attach.h"
#include "preload/loader/loader.h"
#include "preload/process/process.h"
#include "preload/routes/route.h"
#include "session/process_stat.h"

namespace gmt::preload {
namespace {

using session::ExitKind;
using session::Handshake;

// State: WatchExit() sets it when a session starts, and only a process with a session reads it.
constinit char session_path[PATH_MAX + 100] = {};

// Returns whether the collector is dead, even if not reaped: a container without an init process
// reaps nothing.
bool Gone(pid_t collector) {
  if (kill(collector, 0) != 0) return errno == ESRCH;
  char folder[32];
  snprintf(folder, sizeof(folder), "/proc/%d", collector);
  const session::ProcessStat stat(folder);
  return stat.is_readable() && stat.HasEnded();
}

void SayNotCollected(const char* what) {
  const HeldSignals held;
  Say("%s: %s keeps what is recorded; afterwards: gpumemtrace collect %s", what, session_path,
      session_path);
}

// Reports a driver that no hook ever led to: its caller does not look up symbols in preloaded
// libraries. A program that is linked with the driver, or looks it up visibly, may just have made
// no hooked call, such as only asking for the number of devices.
void SayIfNothingCouldBeSeen() {
  if (!AnyLibraryIsNamed("libcuda.so")) return;
  if (AnyHookUsed() || AnyDriverCallSeen() || DriverWasLookedUp() || getauxval(AT_SECURE) != 0)
    return;
  const Route route = RouteTaken();
  if (route == Route::kNone) return;
  if (AnyModuleIsLinkedTo("libcuda.so.1")) return;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;
  LibcDlclose(driver);
  session::Options options;
  const char* text = getenv("GPUMEMTRACE");
  session::ParseOptions(
      text == nullptr ? "" : text, &options, [](void*, auto&) {}, nullptr);
  const HeldSignals held;
  if (options.quiet) return;
  if (route == Route::kPreload) {
    Say("libcuda.so.1 was loaded, but none of its calls could be seen: "
        "libraries opened with RTLD_DEEPBIND bypass preloaded ones");
  } else {
    Say("libcuda.so.1 was loaded, but none of its calls could be seen: %s had looked up its "
        "functions before this library was loaded; use LD_PRELOAD to load it first",
        *KeptByOthers() != '\0' ? KeptByOthers() : "the caller");
  }
}

void NoteStatus(int status, void*) {
  Process* p = Process::IfRecording();
  if (p == nullptr) return;
  session::Control& control = p->map.control();
  control.exit_code.store(status & 0xff, std::memory_order_relaxed);
  control.exit_kind.store(ExitKind::kExited, std::memory_order_release);
}

// Runs when the loader finalizes the library: after the target's own exit handlers and most
// destructors.
__attribute__((destructor)) void WaitForCollector() {
  RemoveDormantSession();
  Process* p = Process::IfRecording();
  if (p == nullptr) return SayIfNothingCouldBeSeen();
  if (!p->collector_started) return;
  session::Control& control = p->map.control();
  control.closing.store(Handshake::kDone, std::memory_order_release);
  constexpr uint64_t kStepNs = 500000, kLookNs = 32 * kStepNs;
  for (uint64_t waited = 0; waited < p->options.exit_wait_ns; waited += kStepNs) {
    if (control.finished.load(std::memory_order_acquire) == Handshake::kDone) return;
    const auto collector = static_cast<pid_t>(control.collector_pid.load());
    if (waited % kLookNs == 0 && collector != 0 && Gone(collector) &&
        control.finished.load(std::memory_order_acquire) != Handshake::kDone) {
      return SayNotCollected("the collector has died");
    }
    const timespec step = {0, kStepNs};
    syscall(SYS_nanosleep, &step, nullptr);  // not a cancellation point
  }
  if (p->options.exit_wait_ns != 0 && control.collector_pid.load() == 0)
    SayNotCollected("the collector has not started");
}

}  // namespace

const char* SessionPath() { return session_path; }

void WatchExit(const char* session) {
  snprintf(session_path, sizeof(session_path), "%s", session);
  if (&on_exit != nullptr) on_exit(NoteStatus, nullptr);
}

}  // namespace gmt::preload
