#include "preload/exit.h"

#include <stdlib.h>
#include <time.h>

#include "preload/process.h"

namespace gmt::preload {
namespace {

using session::ExitKind;
using session::Handshake;

void NoteStatus(int status, void*) {
  Process* p = Process::IfRecording();
  if (p == nullptr) return;
  session::Control& control = p->map.control();
  control.exit_code.store(status & 0xff, std::memory_order_relaxed);
  control.exit_kind.store(ExitKind::kExited, std::memory_order_release);
}

// Runs when the loader takes the library down: after the target's own exit handlers and most
// destructors.
__attribute__((destructor)) void WaitForCollector() {
  Process* p = Process::IfRecording();
  if (p == nullptr || !p->collector_started) return;
  session::Control& control = p->map.control();
  control.closing.store(Handshake::kDone, std::memory_order_release);
  constexpr uint64_t kStepNs = 500000;
  for (uint64_t waited = 0; waited < p->options.exit_wait_ns; waited += kStepNs) {
    if (control.finished.load(std::memory_order_acquire) == Handshake::kDone) return;
    const timespec step = {0, kStepNs};
    nanosleep(&step, nullptr);
  }
}

}  // namespace

void WatchExit() { on_exit(NoteStatus, nullptr); }

}  // namespace gmt::preload
