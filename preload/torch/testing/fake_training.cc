// A program that uses the fake PyTorch as Python uses the real one: loaded with RTLD_LOCAL.
//   usage: fake_training LIBTORCH_CPU blocks|backward|throwing|ranges|optimizer|roles|saves
//          fake_training LIBTORCH_CPU cost [BATCHES]
// `cost` prints, for scripts/bench --torch, the nanoseconds of a node that saves nothing, of one
// that saves two tensors, of one that also releases them, and of reading the clock. It measures CPU
// time and takes the minimum of many short batches, which alternate so that they see the same
// machine state.

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "preload/torch/testing/fake_torch.h"

namespace {

void* library = nullptr;

template <typename Function>
Function Find(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}
#define CALL(name) Find(&name, #name)

// One line of the model per N. It also allocates, so that its stack is recorded.
template <int kN>
[[gnu::noinline]] void Line(decltype(&FakeForward) forward, decltype(&FakeAllocate) allocate,
                            int thrower) {
  forward(512 * (kN + 1), kN == thrower);
  allocate(0x600000000000 + (kN << 20), 512 * (kN + 1), c10::kCuda, 0);
  asm volatile("" : : : "memory");  // no tail call
}

template <int... kN>
void Forward(std::integer_sequence<int, kN...>, int thrower) {
  const auto forward = CALL(FakeForward);
  const auto allocate = CALL(FakeAllocate);
  (Line<kN>(forward, allocate, thrower), ...);
}

constexpr auto kTwelve = std::make_integer_sequence<int, 12>();

void Blocks() {
  const auto allocate = CALL(FakeAllocate);
  const auto free = CALL(FakeFree);
  allocate(0x7000'0000'0000, 1024, c10::kCuda, 1);
  CALL(FakeUseStream)(3);
  allocate(0x7000'0000'0400, 512, c10::kCuda, 1);
  allocate(0x5000'0000'0000, 4096, c10::kCpu, 0);
  free(0x5000'0000'0000, 4096, c10::kCpu, 0);
  free(0x7000'0000'0000, 1024, c10::kCuda, 1);
  CALL(FakeRunOut)(1 << 30);
}

double ProcessorNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

struct Timed {
  const char* name;
  std::function<void(int)> work;
  double least = 1e9;
};

void Cost(int batches) {
  constexpr int kInOne = 32;
  const auto save = CALL(FakeSave);
  Timed all[] = {{"plain", [&](int count) { save(count, 0, true); }},
                 {"saved", [&](int count) { save(count, 2, false); }},
                 {"released", [&](int count) { save(count, 2, true); }},
                 {"clock", [](int count) {
                    timespec t;
                    for (int i = 0; i < count; ++i) clock_gettime(CLOCK_MONOTONIC, &t);
                  }}};
  for (int batch = 0; batch < batches; ++batch) {
    for (Timed& timed : all) {
      const double begun = ProcessorNs();
      timed.work(kInOne);
      timed.least = std::min(timed.least, (ProcessorNs() - begun) / kInOne);
    }
  }
  const char* before = "{";
  for (const Timed& timed : all) {
    std::printf("%s\"%s\": %.1f", before, timed.name, timed.least);
    before = ", ";
  }
  std::puts("}");
}

}  // namespace

int main(int argc, char** argv) {
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::puts(dlerror()), 1;
  const char* what = argv[2];
  if (std::strcmp(what, "blocks") == 0) Blocks();
  if (std::strcmp(what, "backward") == 0) {
    CALL(FakeAllocate)(0x5555'0000'0000, 12345, c10::kCuda, 0);
    Forward(kTwelve, -1);
    std::printf("%d gradients\n", CALL(FakeBackward)());
  }
  if (std::strcmp(what, "throwing") == 0) {
    CALL(FakeAllocate)(0x5555'0000'0000, 12345, c10::kCuda, 0);
    Forward(kTwelve, -1);
    std::printf("%d gradients\n", CALL(FakeBackward)());
    Forward(kTwelve, 6);
    std::printf("%d gradients\n", CALL(FakeBackward)());
    CALL(FakeAllocate)(0x7777'0000'0000, 12345, c10::kCuda, 0);
  }
  if (std::strcmp(what, "ranges") == 0) {
    CALL(FakeAllocate)(0x7777'0000'0000, 12345, c10::kCuda, 0);
    CALL(FakeRange)(static_cast<int8_t>(at::RecordScope::USER_SCOPE));
    CALL(FakeRange)(static_cast<int8_t>(at::RecordScope::FUNCTION));
  }
  if (std::strcmp(what, "optimizer") == 0) {
    CALL(FakeOptimizer)();  // before there is GPU memory
    CALL(FakeAllocate)(0x7777'0000'0000, 12345, c10::kCuda, 0);
    CALL(FakeOptimizer)();
  }
  if (std::strcmp(what, "roles") == 0) CALL(FakeTrain)(3);
  if (std::strcmp(what, "saves") == 0) CALL(FakeSave)(3, 2, true);
  if (std::strcmp(what, "cost") == 0) return Cost(argc > 3 ? std::atoi(argv[3]) : 8000), 0;
  const FakeCounts counts = CALL(FakeForwarded)();
  std::printf("%d reports, %d lacks of memory\n", counts.reports, counts.lacks);
}
