// A program that uses the fake PyTorch as Python uses the real one: loaded for itself alone.
//   usage: fake_training LIBTORCH_CPU blocks|backward|throwing|ranges|roles

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "preload/torch/testing/fake_torch.h"

namespace {

void* library = nullptr;

template <typename Function>
Function Find(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}
#define CALL(name) Find(&name, #name)

// A line of the model for each N. It allocates as well, so that its stack is known.
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

}  // namespace

int main(int, char** argv) {
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
  if (std::strcmp(what, "roles") == 0) CALL(FakeTrain)(3);
  const FakeCounts counts = CALL(FakeForwarded)();
  std::printf("%d reports, %d lacks of memory\n", counts.reports, counts.lacks);
}
