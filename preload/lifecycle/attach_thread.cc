#include "preload/lifecycle/attach_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "preload/base/own_stack.h"
#include "preload/loader/loader.h"
#include "preload/process/process.h"

namespace gmt::preload {
namespace {

constexpr int kStepMs = 10, kRecordingStepMs = 50;
constexpr int kSteps = 1000;
// A call of the program is preferred for this time: its thread has a context.
constexpr int kPatienceMs = 300;

// These functions have moved from libpthread to libc. Importing them from either would keep this
// library from loading with the other.
using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Detach = int (*)(pthread_t);

// State: the process in which the thread runs. A fork child inherits the number but not the thread.
constinit std::atomic<pid_t> runs_in{0};
// Number of requests for the thread. If a request arrives while it is about to end, it continues.
constinit std::atomic<uint32_t> asked{0};

void Sleep(int ms) {
  const timespec time = {0, ms * 1000000};
  syscall(SYS_nanosleep, &time, nullptr);
}

// Unblocks the signals by which libc makes every thread take part in a setuid(), and cancels a
// thread. Otherwise the calling thread would wait for as long as this thread exists.
void TakeSignalsOfLibc() {
  const uint64_t own = uint64_t{3} << 31;  // 32 and 33
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &own, nullptr, sizeof(own));
}

// Returns false if the thread is already running.
bool Claim() {
  const pid_t here = getpid();
  return runs_in.exchange(here) != here;
}

// Waits until no client has attached for kSteps steps, or until the recording that was begun here
// has ended.
void WaitForAttach() {
  bool ours = false;  // the recording was begun here
  int pending_ms = 0;
  for (int step = 0; ours || step < kSteps; ++step) {
    const int ms = ours ? kRecordingStepMs : kStepMs;
    Sleep(ms);
    const Process* dormant = Process::IfDormant();
    const Process* recording = Process::IfRecording();
    if (ours ? dormant != nullptr : recording != nullptr) break;
    const Process* p = ours ? recording : dormant;
    pending_ms = p == nullptr || p->attach_gate.HasPendingRequest() ? pending_ms + ms : 0;
    if (pending_ms > kPatienceMs && Process::IfRecordingCalls() != nullptr) ours = true;
  }
}

void* RunAttachThread(void*) {
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

void StartAttachThread() {
  const auto create = reinterpret_cast<Create>(LibcDlsym(RTLD_DEFAULT, "pthread_create"));
  const auto detach = reinterpret_cast<Detach>(LibcDlsym(RTLD_DEFAULT, "pthread_detach"));
  if (create == nullptr || detach == nullptr) return;
  asked.fetch_add(1);
  if (!Claim()) return;
  const HeldSignals held;  // inherited by the thread, which must not run the program's handlers
  pthread_t thread;
  if (create(&thread, nullptr, RunAttachThread, nullptr) != 0) {
    runs_in.store(0);
  } else {
    detach(thread);
  }
}

}  // namespace gmt::preload
