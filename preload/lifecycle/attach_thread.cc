#include "preload/lifecycle/attach_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "preload/base/aside.h"
#include "preload/loader/loader.h"
#include "preload/process/process.h"

namespace gmt::preload {
namespace {

constexpr int kStepMs = 10, kRecordingStepMs = 50;
constexpr int kSteps = 1000;
// A call of the program's knows more: its thread has a context.
constexpr int kPatienceMs = 300;

// The functions have moved from libpthread to libc: under the names of either, this library would not
// load with the other.
using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Detach = int (*)(pthread_t);

// The process that it runs in: a fork child inherits the number, and not the thread.
constinit std::atomic<pid_t> runs_in{0};
// How often somebody wanted the thread: one that is about to end stays for who came last.
constinit std::atomic<uint32_t> asked{0};

void Sleep(int ms) {
  const timespec time = {0, ms * 1000000};
  syscall(SYS_nanosleep, &time, nullptr);
}

// The signals by which libc has every thread follow a setuid(), and cancels one: who waits for the answer
// would wait for as long as this thread is there.
void TakeSignalsOfLibc() {
  const uint64_t own = uint64_t{3} << 31;  // 32 and 33
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &own, nullptr, sizeof(own));
}

// False: it runs already.
bool Claim() {
  const pid_t here = getpid();
  return runs_in.exchange(here) != here;
}

// Until nobody has attached for kSteps steps, or the recording that was begun here has ended.
void WaitForAttach() {
  bool ours = false;  // the recording was begun here
  int turned_ms = 0;
  for (int step = 0; ours || step < kSteps; ++step) {
    const int ms = ours ? kRecordingStepMs : kStepMs;
    Sleep(ms);
    const Process* dormant = Process::IfDormant();
    const Process* recording = Process::IfRecording();
    if (ours ? dormant != nullptr : recording != nullptr) break;
    const Process* p = ours ? recording : dormant;
    turned_ms = p == nullptr || p->door.IsTurned() ? turned_ms + ms : 0;
    if (turned_ms > kPatienceMs && Process::IfRecordingCalls() != nullptr) ours = true;
  }
}

void* WaitAtTheDoor(void*) {
  TakeSignalsOfLibc();
  uint32_t seen;
  do {
    seen = asked.load();
    WaitForAttach();
    runs_in.store(0);
  } while (asked.load() != seen && Claim());
  return nullptr;
}

}  // namespace

void BeginAttachAside() {
  const auto create = reinterpret_cast<Create>(LibcDlsym(RTLD_DEFAULT, "pthread_create"));
  const auto detach = reinterpret_cast<Detach>(LibcDlsym(RTLD_DEFAULT, "pthread_detach"));
  if (create == nullptr || detach == nullptr) return;
  asked.fetch_add(1);
  if (!Claim()) return;
  const HeldSignals held;  // which the thread inherits: the program's handlers are not for it
  pthread_t thread;
  if (create(&thread, nullptr, WaitAtTheDoor, nullptr) != 0) {
    runs_in.store(0);
  } else {
    detach(thread);
  }
}

}  // namespace gmt::preload
