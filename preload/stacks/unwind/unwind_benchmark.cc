// Measures a walk over 20 and 50 native frames: ours, and the alternatives available to a profiler.
// Compare rows of one run; `frame` is seconds per frame.
//
//   build/dev/benchmark/unwind_benchmark
//   valgrind --tool=callgrind --toggle-collect='*WalkOwn*' build/dev/benchmark/unwind_benchmark
//     --walks=1000   instructions instead of time: divide the collected count by 1000 * 50 frames

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/native_walk.h"
#include "preload/stacks/unwind/slow_walk.h"

namespace gmt::preload {
namespace {

constexpr int kRoom = 128;

struct Stack {
  uint64_t frames[kRoom];
  uint64_t cfas[kRoom];
  int size;
};

template <NativeWalk::Known kKnown>
[[gnu::always_inline]] inline void WalkBy(const Registers& here, Stack* stack) {
  NativeWalk walk(here, kKnown);
  int n = 0;
  walk.ForEach([&](NativeFrame frame) __attribute__((always_inline)) {
    stack->frames[n] = frame.address;
    stack->cfas[n++] = frame.cfa;
    return n < kRoom;
  });
  stack->size = n;
}

__attribute__((noinline)) void WalkOwn(Stack* stack) {
  WalkBy<NativeWalk::Known::kNothing>(CaptureRegisters(), stack);
}

// All frames but the innermost are those of an earlier walk.
__attribute__((noinline)) void WalkAfterLast(Stack* stack) {
  WalkBy<NativeWalk::Known::kEarlierWalks>(CaptureRegisters(), stack);
}

// The same without reporting frames: what a hook does to recognize a stack.
__attribute__((noinline)) void WalkKnown(Stack* stack) {
  NativeWalk walk(CaptureRegisters(), NativeWalk::Known::kEarlierWalks);
  stack->size = walk.KeepAll(CaptureCaller()) ? static_cast<int>(walk.path()->Count()) : 0;
}

__attribute__((noinline)) void WalkSlowly(Stack* stack) {
  const Registers here = CaptureRegisters();
  SlowWalk walk(here, StackRange::Around(here.sp));
  int n = 0;
  for (NativeFrame frame; n < kRoom && walk.Next(&frame); ++n) {
    stack->frames[n] = frame.address;
    stack->cfas[n] = frame.cfa;
  }
  stack->size = n;
}

// The first walk over each address, as after a library has been unloaded.
void WalkCold(Stack* stack) {
  RulesChanged();
  WalkOwn(stack);
}

void WalkLibunwind(Stack* stack) {
  using Backtrace = int (*)(void** frames, int room);
  static const auto backtrace = [] {
    void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr
                              : reinterpret_cast<Backtrace>(dlsym(library, "unw_backtrace"));
  }();
  stack->size =
      backtrace == nullptr ? 0 : backtrace(reinterpret_cast<void**>(stack->frames), kRoom);
}

void WalkLibgcc(Stack* stack) {
  stack->size = 0;
  const auto add = [](_Unwind_Context* context, void* argument) {
    auto* s = static_cast<Stack*>(argument);
    s->frames[s->size] = _Unwind_GetIP(context);
    s->cfas[s->size++] = _Unwind_GetCFA(context);
    return s->size < kRoom ? _URC_NO_REASON : _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(add, stack);
}

void WalkGlibc(Stack* stack) {
  stack->size = backtrace(reinterpret_cast<void**>(stack->frames), kRoom);
}

using Walk = void (*)(Stack*);
using Body = void (*)(Walk walk, void* argument);

// Functions with different frames, nested in each other: every frame has its own address.
template <int kDepth>
__attribute__((noinline)) void Nest(Body body, Walk walk, void* argument) {
  char memory[16 + kDepth % 7 * 24];
  asm volatile("" : : "r"(memory) : "memory");
  if constexpr (kDepth == 0) {
    body(walk, argument);
  } else {
    Nest<kDepth - 1>(body, walk, argument);
  }
  asm volatile("" : : "r"(memory) : "memory");
}

template <int kDepth>
void Measure(benchmark::State& state, Walk walk) {
  PrepareModules();
  const auto body = [](Walk function, void* argument) {
    auto& s = *static_cast<benchmark::State*>(argument);
    Stack stack = {};
    function(&stack);
    if (stack.size == 0) {
      s.SkipWithError("not installed");
      return;
    }
    for (auto _ : s) {
      function(&stack);
      benchmark::DoNotOptimize(stack);
    }
    s.counters["frames"] = stack.size;
    s.counters["frame"] = benchmark::Counter(
        stack.size, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  };
  Nest<kDepth>(body, walk, &state);
}

void Frames20(benchmark::State& state, Walk walk) { Measure<6>(state, walk); }
void Frames50(benchmark::State& state, Walk walk) { Measure<36>(state, walk); }

#define GMT_MEASURE(walk)                  \
  BENCHMARK_CAPTURE(Frames20, walk, walk); \
  BENCHMARK_CAPTURE(Frames50, walk, walk);
GMT_MEASURE(WalkOwn)
GMT_MEASURE(WalkAfterLast)
GMT_MEASURE(WalkKnown)
GMT_MEASURE(WalkLibunwind)
GMT_MEASURE(WalkLibgcc)
GMT_MEASURE(WalkGlibc)
GMT_MEASURE(WalkSlowly)
GMT_MEASURE(WalkCold)

void WalkMany(int walks) {
  PrepareModules();
  const auto body = [](Walk walk, void* argument) {
    Stack stack;
    for (int i = 0; i < *static_cast<int*>(argument); ++i) {
      walk(&stack);
      benchmark::DoNotOptimize(stack);
    }
    std::printf("%d frames\n", stack.size);
  };
  Nest<42>(body, WalkOwn, &walks);
}

}  // namespace
}  // namespace gmt::preload

int main(int argc, char** argv) {
  if (argc == 2 && std::strncmp(argv[1], "--walks=", 8) == 0) {
    gmt::preload::WalkMany(std::atoi(argv[1] + 8));
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
