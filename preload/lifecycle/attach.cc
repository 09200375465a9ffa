#include "preload/lifecycle/attach.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/clock.h"
#include "preload/base/own_stack.h"
#include "preload/lifecycle/exit.h"
#include "preload/loader/loader.h"
#include "preload/record/cupti_attention.h"
#include "preload/record/record_source.h"
#include "preload/routes/got_patch.h"
#include "preload/routes/route.h"
#include "session/attach.h"

namespace gmt::preload {
namespace {

constexpr uint64_t kWaitForWritersNs = 20000000;
constexpr uint32_t kWaitForCuptiMs = 50;  // inside a call of the program; the next one continues

// Errors in an attach's options are ignored: there is no reader for them, and the client that
// attaches has checked the options.
void IgnoreError(void*, const session::OptionError&) {}

void TakeOptions(Process* p) {
  const session::Control& control = p->map.control();
  char text[sizeof(control.attach_options)];
  size_t size = control.attach_options_size.load(std::memory_order_acquire);
  if (size > sizeof(text)) size = sizeof(text);
  memcpy(text, control.attach_options, size);
  p->options = p->attach_gate.options;
  session::ParseOptions(std::string_view(text, size), &p->options, IgnoreError, nullptr);
}

// Restores the state of a session that has just been created.
void EmptyTables(Process* p) {
  session::Control& control = p->map.control();
  control.arena_used.store(0, std::memory_order_relaxed);
  control.arena_backed.store(p->attach_gate.arena_words, std::memory_order_relaxed);
  control.arena_errno.store(0, std::memory_order_relaxed);
  control.live_levels.store(0, std::memory_order_relaxed);
  control.live_errno.store(0, std::memory_order_relaxed);
  control.module_count.store(0, std::memory_order_relaxed);
  control.module_lock.store(0, std::memory_order_relaxed);
  control.context_count.store(0, std::memory_order_relaxed);
  for (auto& fact : control.facts) fact.store(0, std::memory_order_relaxed);
}

void NoteBeginning(Process* p, uint32_t attach) {
  session::Control& control = p->map.control();
  for (size_t i = 0; i < session::kCounterCount; ++i) {
    control.attach_counters[i].store(control.counters[i].load(std::memory_order_relaxed),
                                     std::memory_order_relaxed);
  }
  control.attach_first_ticket.store(control.tail.load(std::memory_order_relaxed),
                                    std::memory_order_relaxed);
  control.attach_begin_ns.store(NowNs(), std::memory_order_relaxed);
  control.attach_last.store(attach, std::memory_order_relaxed);
}

void FindUnwinders(void* argument) {
  auto* p = static_cast<Process*>(argument);
  const char* unwinder = "";
  p->capture = StackCapture::Find(p->options, &unwinder);
  if (p->options.python_stacks) p->python.Find();
  dlerror();  // failed lookups must not be visible to the target
}

void Refuse(Process* p, uint32_t attach, int error) {
  session::Control& control = p->map.control();
  control.attach_errno.store(static_cast<uint32_t>(error), std::memory_order_relaxed);
  control.attach_refused.store(attach, std::memory_order_release);
}

// A pid of another PID namespace proves nothing, but then the process it belongs to still has the
// session open, and only the session's name is removed.
bool Gone(pid_t collector) { return kill(collector, 0) != 0 && errno == ESRCH; }

bool WaitForWriters(const AttachGate& attach_gate) {
  const uint64_t begin = NowNs();
  while (attach_gate.HasWriters()) {
    if (NowNs() - begin > kWaitForWritersNs) return false;
    const timespec moment = {0, 50000};
    syscall(SYS_nanosleep, &moment, nullptr);  // not a cancellation point
  }
  return true;
}

}  // namespace

Process::Status BeginAttach(Process* p) {
  const uint32_t attach = p->attach_gate.wanted->load(std::memory_order_acquire);
  p->attach_gate.seen.store(attach, std::memory_order_relaxed);
  if (attach == 0) return Process::kDormant;
  const int error = session::BackSections(p->map, p->attach_gate.arena_words, SessionPath());
  if (error != 0) {
    Refuse(p, attach, error);
    return Process::kDormant;
  }
  TakeOptions(p);
  EmptyTables(p);
  p->ResetForRecording(attach);
  if (!RunOnOwnStack(FindUnwinders, p)) {
    session::DropSections(p->map);
    Refuse(p, attach, ENOMEM);
    return Process::kDormant;
  }
  NoteBeginning(p, attach);
  p->WatchHeaps(p->options.heaps);
  p->map.control().attach_now.store(attach, std::memory_order_release);
  return Process::kRecording;
}

Process::Status EndAttach(Process* p, bool first) {
  p->WatchHeaps(0);
  if (!EndCupti(p, first ? kWaitForCuptiMs : 0)) return Process::kEnding;
  if (!WaitForWriters(p->attach_gate)) return Process::kEnding;
  p->torch.forward.Forget();
  // Before another client can attach, because that client then finds the slots to be patched again.
  if (RouteTaken() == Route::kAttach) RestoreSlots();
  session::Control& control = p->map.control();
  // The collector releases the memory. If there is none, or it has just gone (which it announces
  // before it checks whether we have ended), no other process would.
  control.attach_now.store(0, std::memory_order_seq_cst);
  if (control.collector_pid.load(std::memory_order_seq_cst) == 0) session::DropSections(p->map);
  p->attach_gate.seen.store(0, std::memory_order_relaxed);
  p->WatchAttachGate();
  return Process::kDormant;
}

void OpenAttachGate(Process* p, const session::CreatedSession& session) {
  p->attach_gate.options = p->options;
  p->attach_gate.arena_words = session.arena_words;
  p->attach_gate.Open(&p->map.control());
}

void RemoveDormantSession() {
  const Process* p = Process::IfDormant();
  if (p == nullptr || SessionPath()[0] == '\0') return;
  session::Control& control = p->map.control();
  // A collector that is still working on the last attach sees this when it ends, or is found dead.
  control.closing.store(session::Handshake::kDone, std::memory_order_seq_cst);
  const auto collector = static_cast<pid_t>(control.collector_pid.load(std::memory_order_seq_cst));
  // A client that attaches at this moment finds that the process has gone, which is about to be
  // true.
  if (control.attach_now.load() != 0 || (collector != 0 && !Gone(collector))) return;
  unlink(SessionPath());
  char socket[PATH_MAX];  // left behind by a collector that was killed
  const int length = snprintf(socket, sizeof(socket), "%s.sock", SessionPath());
  if (collector != 0 && length > 0 && static_cast<size_t>(length) < sizeof(socket)) unlink(socket);
}

}  // namespace gmt::preload
