// A library whose names, lines and inlined calls are known to the tests. Built in several ways: see
// CMakeLists.txt.
//
// A probe returns the address just after an instruction of the probed function, like a return
// address.

#include <cstddef>

namespace sample {

#define SAMPLE_HERE(pc) asm volatile("lea 0(%%rip), %0" : "=r"(pc))

__attribute__((always_inline)) inline void* Innermost() {
  void* pc;
  SAMPLE_HERE(pc);  // line 15
  return pc;
}

__attribute__((always_inline)) inline void* Middle() {
  return Innermost();  // line 20
}

template <typename T, size_t kCount>
struct Holder {
  __attribute__((noinline)) static void* Probe(const T&) {
    return Middle();  // line 26
  }
};

}  // namespace sample

extern "C" {

void* sample_inline_probe() { return sample::Holder<const char*, 7>::Probe(""); }

void* sample_plain_probe() {
  void* pc;
  SAMPLE_HERE(pc);  // line 38
  return pc;
}

// Assembler: a symbol without a size, a sized one 16 bytes after it, and bytes after that which
// belong to no symbol.
asm(R"(
    .text
    .balign 64
    .globl sample_unsized
    .type sample_unsized, @function
sample_unsized:
    ret
    .balign 16
    .globl sample_sized
    .type sample_sized, @function
sample_sized:
    ret
    .size sample_sized, 1
    .skip 63, 0xcc
)");
}
