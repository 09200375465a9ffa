// Compares walks over frames of this program with libgcc's unwinder and the slow walk.

#include "preload/stacks/unwind/native_walk.h"

#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <initializer_list>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/testing/compare_walks.h"

namespace gmt::preload {
namespace {

using testing::Collect;
using testing::CompareWalks;
using testing::Comparison;
using testing::Outcome;
using testing::WalkedFrames;

__attribute__((noinline)) void ExpectAllSame() {
  for (int i = 0; i < 2; ++i) {  // cold, then warm
    Comparison c;
    CompareWalks(true, &c);
    EXPECT_EQ(c.outcome, Outcome::kSame) << "at frame " << c.where << " of " << c.own.count;
    EXPECT_FALSE(c.slow_differs);
    EXPECT_FALSE(c.after_last_differs);
    EXPECT_GT(c.own.count, 2u);
  }
  asm volatile("" ::: "memory");  // not a tail call
}

__attribute__((noinline)) WalkedFrames Walk() {
  WalkedFrames walked;
  NativeWalk walk(CaptureRegisters());
  Collect(&walk, &walked);
  return walked;
}

class NativeWalkTest : public ::testing::Test {
 protected:
  NativeWalkTest() {
    PrepareModules();
    RulesChanged();
  }
};

TEST_F(NativeWalkTest, PlainFramesMatchLibgcc) { ExpectAllSame(); }

__attribute__((noinline)) void Recurse(int depth) {
  if (depth == 0) {
    ExpectAllSame();
  } else {
    Recurse(depth - 1);
  }
  asm volatile("" ::: "memory");
}

TEST_F(NativeWalkTest, RecursionIsFollowedToTheEnd) { Recurse(100); }

TEST_F(NativeWalkTest, VeryDeepRecursionIsTruncated) {
  struct Deep {
    static __attribute__((noinline)) void Recurse(int depth, WalkedFrames* walked) {
      if (depth == 0) {
        *walked = Walk();
      } else {
        Recurse(depth - 1, walked);
      }
      asm volatile("" ::: "memory");
    }
  };
  WalkedFrames walked;
  Deep::Recurse(1000, &walked);
  EXPECT_TRUE(walked.truncated);
  EXPECT_GE(walked.count, 256u);
}

__attribute__((noinline)) void InVariableFrame(size_t size) {
  auto* memory = static_cast<char*>(alloca(size));
  asm volatile("" : : "r"(memory) : "memory");
  ExpectAllSame();
  asm volatile("" : : "r"(memory) : "memory");
}

TEST_F(NativeWalkTest, FramesOfVariableSize) {
  for (size_t size : {16, 1000, 100000}) InVariableFrame(size);
}

template <size_t kAlignment>
__attribute__((noinline)) void InAlignedFrame() {
  alignas(kAlignment) char memory[64];
  asm volatile("" : : "r"(memory) : "memory");
  ExpectAllSame();
  asm volatile("" : : "r"(memory) : "memory");
}

TEST_F(NativeWalkTest, FramesThatRealignTheStack) {
  InAlignedFrame<32>();
  InAlignedFrame<64>();
  InAlignedFrame<4096>();
  InAlignedFrame<65536>();
}

int CompareAndWalk(const void* a, const void* b) {
  ExpectAllSame();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

TEST_F(NativeWalkTest, ThroughACallbackOfLibc) {
  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof(int), CompareAndWalk);
}

struct WalksWhenItEnds {
  ~WalksWhenItEnds() { ExpectAllSame(); }
};

__attribute__((noinline)) void Throw() {
  WalksWhenItEnds walks;
  throw 1;
}

TEST_F(NativeWalkTest, WhileAnExceptionIsInFlight) {
  try {
    Throw();
  } catch (int) {
    ExpectAllSame();
  }
}

TEST_F(NativeWalkTest, OnAThread) {
  std::thread([] { Recurse(10); }).join();
}

ucontext_t main_context, coroutine_context;

void Coroutine() {
  Recurse(5);
  swapcontext(&coroutine_context, &main_context);
}

TEST_F(NativeWalkTest, OnTheStackOfAContext) {
  constexpr size_t kSize = 256 << 10;
  void* stack = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&coroutine_context);
  coroutine_context.uc_stack = {stack, 0, kSize};
  coroutine_context.uc_link = nullptr;
  makecontext(&coroutine_context, Coroutine, 0);
  swapcontext(&main_context, &coroutine_context);
  munmap(stack, kSize);
}

void RunOn(void* stack, size_t size, void (*function)()) {
  getcontext(&coroutine_context);
  coroutine_context.uc_stack = {stack, 0, size};
  coroutine_context.uc_link = &main_context;
  makecontext(&coroutine_context, function, 0);
  swapcontext(&main_context, &coroutine_context);
}

// Code without call frame information.
template <typename Function>
Function MakeCode(std::initializer_list<unsigned char> instructions) {
  constexpr size_t kBefore = 16;  // the bytes before a call are inspected
  auto* code = static_cast<unsigned char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::copy(instructions.begin(), instructions.end(), code + kBefore);
  return reinterpret_cast<Function>(code + kBefore);
}

using Callback = void (*)();

// The frame pointer leads to a former stack of the thread that has been unmapped.
TEST_F(NativeWalkTest, UnmappedStackMemoryIsNotTouched) {
  static constexpr size_t kSize = 256 << 10;
  static void* stack;
  static WalkedFrames walked;
  stack = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  RunOn(stack, kSize, [] { InVariableFrame(kSize / 4 * 3); });
  const uint64_t half = reinterpret_cast<uint64_t>(stack) + kSize / 2;
  munmap(reinterpret_cast<void*>(half), kSize / 2);
  RunOn(stack, kSize / 2, [] {
    const uint64_t gone = reinterpret_cast<uint64_t>(stack) + kSize / 4 * 3;
    // push %rbp; mov %rsi, %rbp; call *%rdi; pop %rbp; ret
    MakeCode<void (*)(Callback, uint64_t)>({0x55, 0x48, 0x89, 0xf5, 0xff, 0xd7, 0x5d, 0xc3})(
        [] { walked = Walk(); }, gone);
  });
  EXPECT_TRUE(walked.truncated);
  EXPECT_GE(walked.count, 2u);
  munmap(stack, kSize / 2);
}

// One such frame is accepted if it leads back to code with tables; two in a row are not.
TEST_F(NativeWalkTest, FramePointersLeadOutOfOneFrameWithoutTables) {
  static WalkedFrames walked;
  const Callback walk = [] { walked = Walk(); };
  // push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret
  const auto call = MakeCode<void (*)(Callback)>({0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3});
  call(walk);
  EXPECT_FALSE(walked.truncated);
  EXPECT_GT(walked.count, 5u);
  // Same, for two arguments: xchg %rdi, %rsi; call *%rsi
  MakeCode<void (*)(void (*)(Callback), Callback)>(
      {0x55, 0x48, 0x89, 0xe5, 0x48, 0x87, 0xfe, 0xff, 0xd6, 0x5d, 0xc3})(call, walk);
  EXPECT_TRUE(walked.truncated);
  EXPECT_LE(walked.count, 4u);
}

void WalkInHandler(int) { ExpectAllSame(); }

void WithHandler(int flags) {
  struct sigaction action = {}, before;
  action.sa_handler = WalkInHandler;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(NativeWalkTest, InASignalHandler) { WithHandler(0); }

TEST_F(NativeWalkTest, OutOfAnAlternateStackIntoTheInterruptedOne) {
  constexpr size_t kSize = 256 << 10;
  std::vector<char> memory(kSize);
  const stack_t stack = {memory.data(), 0, kSize};
  stack_t before;
  sigaltstack(&stack, &before);
  WithHandler(SA_ONSTACK);
  ExpectAllSame();
  sigaltstack(&before, nullptr);
}

TEST_F(NativeWalkTest, DoesNotTouchErrno) {
  errno = 1234;
  Walk();
  EXPECT_EQ(errno, 1234);
}

}  // namespace
}  // namespace gmt::preload
