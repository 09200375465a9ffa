// Calls CheckStack() from stacks of every kind that a C++ program can have: deep and shallow ones,
// in callbacks of libc, while exceptions are thrown and caught, in coroutines, in frames of
// variable size and of any alignment, on other stacks, in threads that end, and in signal handlers.
// A part of the program is checked at every single instruction, including prologues, procedure
// linkage tables and the loader's lazy binding: with the processor's trap flag each instruction
// raises SIGTRAP.
//
// Without the library that has CheckStack() it does the same, but checks nothing.
//
// Usage: frames_of_every_kind ROUNDS [calls]     calls: without the single-stepped part

#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" __attribute__((weak)) void CheckStack();

namespace {

#define NOINLINE __attribute__((noinline))

volatile int sink = 0;

NOINLINE void Check() {
  if (CheckStack != nullptr) CheckStack();
  sink = sink + 1;
}

NOINLINE int Recurse(int depth, int way) {
  char memory[64];
  std::memset(memory, way, sizeof(memory));
  if (depth == 0) {
    Check();
    return memory[3];
  }
  const int below = way % 2 == 0 ? Recurse(depth - 1, way / 2) : Recurse(depth - 1, way / 2 + 1);
  return below + memory[way & 63];
}

int CompareAndCheck(const void* a, const void* b) {
  Check();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void Callbacks() {
  int numbers[20];
  for (int i = 0; i < 20; ++i) numbers[i] = (i * 7) % 20;
  qsort(numbers, 20, sizeof(int), CompareAndCheck);
  const int wanted = 7;
  bsearch(&wanted, numbers, 20, sizeof(int), CompareAndCheck);
  std::sort(numbers, numbers + 20, [](int a, int b) {
    Check();
    return a > b;
  });
}

struct ChecksWhenItEnds {
  ~ChecksWhenItEnds() { Check(); }
};

NOINLINE void Throw(int depth) {
  ChecksWhenItEnds checks;
  if (depth == 0) throw std::runtime_error("thrown to be caught");
  Throw(depth - 1);
}

void Exceptions() {
  for (int depth = 0; depth < 5; ++depth) {
    try {
      Throw(depth);
    } catch (const std::exception&) {
      Check();
      try {
        Throw(1);
      } catch (...) {
        Check();
      }
    }
  }
}

struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};

Task CheckTwice(int n) {
  ChecksWhenItEnds checks;
  Recurse(n, n);
  co_await std::suspend_always();
  Check();
}

void Coroutines() {
  for (int n = 0; n < 3; ++n) {
    Task task = CheckTwice(n);
    while (!task.handle.done()) task.handle.resume();
    task.handle.destroy();
  }
}

NOINLINE void VariableFrame(size_t size) {
  auto* memory = static_cast<char*>(alloca(size));
  memory[0] = static_cast<char>(size);
  memory[size - 1] = 1;
  Check();
  sink = sink + memory[0];
}

template <size_t kAlignment>
NOINLINE void AlignedFrame(int depth) {
  alignas(kAlignment) char memory[kAlignment];
  memory[0] = static_cast<char>(depth);
  asm volatile("" : : "r"(memory) : "memory");
  if (depth > 0) {
    AlignedFrame<kAlignment>(depth - 1);
  } else {
    Check();
  }
  sink = sink + memory[0];
}

template <size_t kAlignment>
NOINLINE void AlignedVariableFrame(size_t size) {
  alignas(kAlignment) char memory[64];
  auto* variable = static_cast<char*>(alloca(size));
  variable[0] = 1;
  memory[1] = variable[0];
  asm volatile("" : : "r"(memory), "r"(variable) : "memory");
  Check();
  sink = sink + memory[1];
}

NOINLINE void LargeFrame() {
  char memory[3 << 20];
  memory[0] = 1;
  asm volatile("" : : "r"(memory) : "memory");
  Check();
  sink = sink + memory[0];
}

// Vectors of 32 bytes on the stack: the compiler realigns the stack.
#if defined(__x86_64__)
__attribute__((noinline, target("avx2"))) double SumOfVectors(const double* numbers, int depth) {
  typedef double Four __attribute__((vector_size(32)));
  Four sum = {0, 0, 0, 0};
  Four kept[4];
  for (int i = 0; i < 4; ++i) {
    std::memcpy(&kept[i], numbers + 4 * i, sizeof(Four));
    sum += kept[i];
  }
  asm volatile("" : : "r"(kept) : "memory");
  if (depth > 0) {
    sum[0] += SumOfVectors(numbers, depth - 1);
  } else {
    Check();
  }
  return sum[0] + kept[1][2];
}
#endif

void FrameSizes() {
  for (size_t size = 1; size < 100000; size = size * 3 + 8) VariableFrame(size);
  for (int depth = 0; depth < 3; ++depth) {
    AlignedFrame<32>(depth);
    AlignedFrame<64>(depth);
    AlignedFrame<4096>(depth);
    AlignedFrame<65536>(depth);
  }
  for (size_t size = 8; size < 5000; size = size * 5) {
    AlignedVariableFrame<64>(size);
    AlignedVariableFrame<65536>(size);
  }
  LargeFrame();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    const double numbers[16] = {1, 2, 3};
    for (int depth = 0; depth < 4; ++depth) SumOfVectors(numbers, depth);
  }
#endif
}

ucontext_t outside, inside;

void OnOtherStack() {
  for (int depth = 0; depth < 4; ++depth) {
    Recurse(depth, depth);
    swapcontext(&inside, &outside);
  }
}

void Contexts(ucontext_t* link) {
  const size_t size = 128 << 10;
  void* stack = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&inside);
  inside.uc_stack = {stack, 0, size};
  inside.uc_link = link;
  makecontext(&inside, OnOtherStack, 0);
  for (int i = 0; i < 4; ++i) swapcontext(&outside, &inside);
  munmap(stack, size);
}

void CheckInHandler(int) { Check(); }

void Handle(int signal, int flags) {
  struct sigaction action = {};
  action.sa_handler = CheckInHandler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

NOINLINE void RaiseInFrames(int depth) {
  if (depth > 0) {
    RaiseInFrames(depth - 1);
  } else {
    raise(SIGUSR1);
  }
  sink = sink + 1;
}

void Signals() {
  for (int flags : {0, SA_ONSTACK, SA_NODEFER}) {
    Handle(SIGUSR1, flags);
    for (int depth = 0; depth < 3; ++depth) RaiseInFrames(depth);
  }
}

// A handler of one signal that is interrupted by another.
void CheckAndRaise(int) {
  Check();
  raise(SIGUSR1);
  Check();
}

void NestedSignals() {
  Handle(SIGUSR1, SA_ONSTACK);
  struct sigaction action = {};
  action.sa_handler = CheckAndRaise;
  sigaction(SIGUSR2, &action, nullptr);
  raise(SIGUSR2);
}

thread_local ChecksWhenItEnds checks_at_thread_exit;

void Threads() {
  static pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, [](void*) { Recurse(2, 1); });
    return made;
  }();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      (void)&checks_at_thread_exit;
      pthread_setspecific(key, &key);
      Recurse(i * 5, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The function that runs one instruction at a time. Functions of libc that are called here for the
// first time are bound meanwhile if the program was linked lazily.
NOINLINE int EveryInstruction(int n) {
  std::string text = "seven " + std::to_string(n);
  text += std::to_string(std::cbrt(static_cast<double>(n)));
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%s %d %.3f", text.c_str(), n, n / 7.0);
  int numbers[] = {5, 3, 8, n};
  qsort(numbers, 4, sizeof(int), [](const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  int sum = numbers[2] + atoi(buffer + 6) + static_cast<int>(strtol("12", nullptr, 10));
  alignas(64) char aligned[128];
  std::memset(aligned, sum, sizeof(aligned));
  asm volatile("" : : "r"(aligned) : "memory");
  try {
    if (n % 2 == 0) throw n;
  } catch (int caught) {
    sum += caught;
  }
  char* variable = static_cast<char*>(alloca(static_cast<size_t>(n + 16)));
  std::memset(variable, 1, 8);
  return sum + aligned[5] + variable[3] + static_cast<int>(strlen(buffer));
}

#if defined(__x86_64__)
void SetTrapFlag() { asm volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }
void ClearTrapFlag() {
  asm volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" : : : "memory", "cc");
}

void SingleSteps(int n) {
  Handle(SIGTRAP, SA_ONSTACK);
  SetTrapFlag();
  const int sum = EveryInstruction(n);
  ClearTrapFlag();
  sink = sink + sum;
}
#else
void SingleSteps(int) {}
#endif

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<char> memory(256 << 10);
  const stack_t stack = {memory.data(), 0, memory.size()};
  sigaltstack(&stack, nullptr);
  for (int round = 0; round < rounds; ++round) {
    for (int depth = 0; depth < 40; depth += 3) Recurse(depth, round * 77 + depth * 5);
    Callbacks();
    Exceptions();
    Coroutines();
    FrameSizes();
    Contexts(nullptr);
    Contexts(&outside);
    Signals();
    NestedSignals();
    Threads();
    if (argc < 3 && round < 3) SingleSteps(round);
  }
  std::printf("done\n");
  return 0;
}
