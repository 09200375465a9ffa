// Sites that differ in when, and on which stack, their function is called.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include <coroutine>
#include <future>
#include <thread>

#include "tests/programs/stack_sites/cpp_sites.h"

namespace cpp {

struct Global {
  NOINLINE Global() {
    Take(SizeOf("cc_static_init"));  // site cc_static_init: cpp::Global::Global
    // < __static_initialization_and_destruction_0@global < _GLOBAL__sub_I__ZN3cpp6globalE@?
    // < ~
    Stay();
  }
  NOINLINE ~Global() {
    Take(SizeOf("cc_static_end"));  // site cc_static_end: cpp::Global::~Global < ~
    Stay();
  }
};

Global global;  // @global

NOINLINE void AtExit() {
  Take(SizeOf("cc_atexit"));  // site cc_atexit: cpp::AtExit < ~
  Stay();
}

NOINLINE void OnThread() {
  Take(SizeOf("cc_thread"));  // site cc_thread: cpp::OnThread < ~
  Stay();
}

struct ThreadLocal {
  NOINLINE ~ThreadLocal() {
    Take(SizeOf("cc_thread_local"));  // site cc_thread_local: cpp::ThreadLocal::~ThreadLocal < ~
    Stay();
  }
};

NOINLINE void UsesThreadLocal() {
  static thread_local ThreadLocal local;
  asm volatile("" : : "r"(&local) : "memory");
}

NOINLINE void KeyDestructor(void*) {
  Take(SizeOf("cc_key"));  // site cc_key: cpp::KeyDestructor < ~
  Stay();
}

NOINLINE void UsesKey() {
  pthread_key_t key;
  pthread_key_create(&key, KeyDestructor);
  pthread_setspecific(key, &key);
}

NOINLINE void Threads() {
  std::thread(OnThread).join();
  std::thread(UsesThreadLocal).join();
  std::thread(UsesKey).join();
  std::async(std::launch::async, [] {
    Take(SizeOf("cc_async"));  // site cc_async: operator() < ~
    Stay();
  }).get();
}

NOINLINE void OnSignal(int) {
  Take(SizeOf("cc_signal"));  // site cc_signal: cpp::OnSignal < ~ < cpp::Signals@raise
  // < cpp::RunMoments@signals < main
  Stay();
}

NOINLINE void OnOtherStack(int) {
  Take(SizeOf("cc_sigaltstack"));  // site cc_sigaltstack: cpp::OnOtherStack < ~
  // < cpp::Signals@raise_again < cpp::RunMoments@signals < main
  Stay();
}

NOINLINE void Signals() {
  signal(SIGUSR1, OnSignal);
  raise(SIGUSR1);  // @raise
  static char space[65536];
  const stack_t stack = {.ss_sp = space, .ss_flags = 0, .ss_size = sizeof(space)};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnOtherStack;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, nullptr);
  raise(SIGUSR2);  // @raise_again
}

struct Coroutine {
  struct promise_type {
    Coroutine get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};

NOINLINE void InCoroutine() {
  Take(SizeOf("cc_coroutine"));  // site cc_coroutine: cpp::InCoroutine < cpp::Suspends@resumed
  // < ~ < cpp::Coroutines@resumes < cpp::RunMoments@coroutines < main
  Stay();
}

Coroutine Suspends() {
  co_await std::suspend_always();
  InCoroutine();  // @resumed
}

NOINLINE void Coroutines() {
  Coroutine coroutine = Suspends();
  coroutine.handle.resume();
  coroutine.handle.resume();  // @resumes
  coroutine.handle.destroy();
}

ucontext_t caller, fiber;

NOINLINE void OnFiber() {
  Take(SizeOf("cc_fiber"));  // site cc_fiber: cpp::OnFiber < *
  Stay();
}

NOINLINE void Fibers() {
  static char space[65536];
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = space;
  fiber.uc_stack.ss_size = sizeof(space);
  fiber.uc_link = &caller;
  makecontext(&fiber, OnFiber, 0);
  swapcontext(&caller, &fiber);
}

NOINLINE void RunMoments() {
  atexit(AtExit);
  Threads();
  Signals();     // @signals
  Coroutines();  // @coroutines
  Fibers();
}

}  // namespace cpp
