// Makes the first GPU call at an inconvenient moment: before main, after it, in a signal handler,
// in a thread that is about to end or has a tiny stack.
//
// Usage: moments MOMENT    prints one line; exit code 5
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "use_gpu.h"

namespace {

std::string MomentAsked() {
  std::ifstream file("/proc/self/cmdline");
  std::string program, moment;
  std::getline(file, program, '\0');
  std::getline(file, moment, '\0');
  return moment;
}

bool Asked(const char* moment) { return MomentAsked() == moment; }

__attribute__((constructor)) void BeforeMain() {
  if (Asked("constructor")) UseGpu(1);
}

__attribute__((destructor)) void AfterMain() {
  if (Asked("destructor")) UseGpu(1);
}

void AtExit() { UseGpu(1); }
void InAHandler(int) { UseGpu(1); }
void DoNothing(int) {}

struct UsesGpuWhenItsThreadEnds {
  ~UsesGpuWhenItsThreadEnds() {
    void* memory = std::malloc(100);
    UseGpu(touched);
    std::free(memory);
  }
  int touched = 0;
};
thread_local UsesGpuWhenItsThreadEnds ends;

void* Use(void*) {
  UseGpu(1);
  return nullptr;
}

void OnASmallStack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, Use, nullptr) != 0) std::_Exit(98);
  pthread_join(thread, nullptr);
}

// The request is pending when the thread makes its call, and takes effect where the thread permits
// it.
void WhileBeingCancelled() {
  pthread_t thread;
  const auto run = [](void*) -> void* {
    pthread_cancel(pthread_self());
    UseGpu(1);
    std::printf("not cancelled inside; ");
    std::fflush(stdout);
    pthread_testcancel();
    return nullptr;
  };
  pthread_create(&thread, nullptr, run, nullptr);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("cancelled %d; ", result == PTHREAD_CANCELED);
}

// A timer interrupts every system call that takes longer than 0.2 ms.
void UnderATimer() {
  struct sigaction action = {};
  action.sa_handler = DoNothing;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  UseGpu(1);
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
}

// Another thread forks continuously.
void WhileAnotherThreadForks() {
  std::thread first(UseGpu, 1);
  int failed = 0;
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    failed += waitpid(child, &status, 0) != child || status != 0;
  }
  first.join();
  std::printf("%d children failed; ", failed);
}

void AtMoment(const std::string& moment) {
  if (moment == "atexit") std::atexit(AtExit);
  if (moment == "handler") {
    signal(SIGUSR1, InAHandler);
    raise(SIGUSR1);
  }
  if (moment == "small-stack") OnASmallStack();
  if (moment == "thread-local") std::thread([] { ends.touched = 1; }).join();
  if (moment == "cancel") WhileBeingCancelled();
  if (moment == "timer") UnderATimer();
  if (moment == "forks") WhileAnotherThreadForks();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  AtMoment(argv[1]);
  std::printf("%s\n", argv[1]);
  return 5;
}
