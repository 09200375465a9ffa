// Walks over frames of this program, against libgcc's unwinder and the slow walk.

#include "preload/unwind/native_walk.h"

#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/unwind/loaded_module.h"
#include "preload/unwind/slow_walk.h"

namespace gmt::preload {
namespace {

struct Walked {
  std::vector<NativeFrame> frames;
  bool truncated = false;
};

// Each begins with the frame that called it.
template <typename Walk>
Walked Frames(Walk walk) {
  Walked walked;
  for (NativeFrame frame; walk.Next(&frame);) walked.frames.push_back(frame);
  walked.truncated = walk.truncated();
  walked.frames.erase(walked.frames.begin());
  return walked;
}

__attribute__((noinline)) Walked Own() {
  Walked walked = Frames(NativeWalk(CaptureRegisters()));
  asm volatile("" ::: "memory");  // not a tail call
  return walked;
}

__attribute__((noinline)) Walked Slow() {
  const Registers here = CaptureRegisters();
  Walked walked = Frames(SlowWalk(here, StackRange::Around(here.sp)));
  asm volatile("" ::: "memory");
  return walked;
}

// libgcc tells the CFA of a frame with the frame's caller.
_Unwind_Reason_Code Add(_Unwind_Context* context, void* argument) {
  auto* frames = static_cast<std::vector<NativeFrame>*>(argument);
  if (!frames->empty()) frames->back().cfa = _Unwind_GetCFA(context);
  int exact = 0;
  const uint64_t address = _Unwind_GetIPInfo(context, &exact);
  if (address != 0) frames->push_back({address, 0, exact != 0});
  return _URC_NO_REASON;
}

__attribute__((noinline)) Walked Libgcc() {
  Walked walked;
  _Unwind_Backtrace(Add, &walked.frames);
  walked.frames.erase(walked.frames.begin());
  asm volatile("" ::: "memory");
  return walked;
}

// The innermost of these frames stands at another call in each walk.
void ExpectSame(const Walked& own, const Walked& other) {
  EXPECT_FALSE(own.truncated);
  ASSERT_EQ(own.frames.size(), other.frames.size());
  for (size_t i = 0; i < own.frames.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(own.frames[i].address, other.frames[i].address) << i;
    }
    if (i + 1 < own.frames.size()) {
      EXPECT_EQ(own.frames[i].cfa, other.frames[i].cfa) << i;
    }
    EXPECT_EQ(own.frames[i].exact, other.frames[i].exact) << i;
  }
}

__attribute__((noinline)) void ExpectAllSame() {
  const Walked libgcc = Libgcc();
  ASSERT_GT(libgcc.frames.size(), 2u);
  for (int i = 0; i < 2; ++i) {  // cold, then warm
    ExpectSame(Own(), libgcc);
    ExpectSame(Slow(), libgcc);
  }
}

class NativeWalkTest : public testing::Test {
 protected:
  NativeWalkTest() {
    PrepareModules();
    RulesChanged();
  }
};

TEST_F(NativeWalkTest, PlainFramesAreThoseOfLibgcc) { ExpectAllSame(); }

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
    static __attribute__((noinline)) void Recurse(int depth, Walked* walked) {
      if (depth == 0) {
        *walked = Own();
      } else {
        Recurse(depth - 1, walked);
      }
      asm volatile("" ::: "memory");
    }
  };
  Walked walked;
  Deep::Recurse(1000, &walked);
  EXPECT_TRUE(walked.truncated);
  EXPECT_GE(walked.frames.size(), 256u);
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
  Own();
  EXPECT_EQ(errno, 1234);
}

}  // namespace
}  // namespace gmt::preload
