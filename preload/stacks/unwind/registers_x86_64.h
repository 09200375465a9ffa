// preload/stacks/unwind/registers_x86_64.h
//
// The registers of x86-64 that walks use. Numbers are DWARF's (System V ABI, AMD64 supplement,
// figure 3.36).

#ifndef GMT_PRELOAD_STACKS_UNWIND_REGISTERS_X86_64_H_
#define GMT_PRELOAD_STACKS_UNWIND_REGISTERS_X86_64_H_

#include <stdint.h>

namespace gmt::preload {

struct Registers {
  uint64_t pc, sp, bp, bx, r12, r13, r14, r15;
};

// DWARF's numbers.
inline constexpr uint32_t kRegisterBx = 3, kRegisterBp = 6, kRegisterSp = 7, kRegisterR12 = 12,
                          kRegisterR13 = 13, kRegisterR14 = 14, kRegisterR15 = 15,
                          kRegisterReturn = 16, kRegisterCount = 17;

// Returns the registers of the calling function at one of its instructions. A walk that starts
// there is valid until that function returns.
[[gnu::always_inline]] inline Registers CaptureRegisters() {
  Registers r;
  asm volatile(
      "leaq 0(%%rip), %%rax\n\t"
      "movq %%rax, %0\n\t"
      "movq %%rsp, %1\n\t"
      "movq %%rbp, %2\n\t"
      "movq %%rbx, %3\n\t"
      "movq %%r12, %4\n\t"
      "movq %%r13, %5\n\t"
      "movq %%r14, %6\n\t"
      "movq %%r15, %7"
      : "=m"(r.pc), "=m"(r.sp), "=m"(r.bp), "=m"(r.bx), "=m"(r.r12), "=m"(r.r13), "=m"(r.r14),
        "=m"(r.r15)
      :
      : "rax");
  return r;
}

// Where the calling function returns to, and the two registers by which frames are found, there.
struct CallerRegisters {
  uint64_t behind, sp, bp;
};
[[gnu::always_inline]] inline CallerRegisters CaptureCaller() {
  // A function that has a frame pointer saves its caller's where that points to.
  const auto* frame = static_cast<const uint64_t*>(__builtin_frame_address(0));
  return {reinterpret_cast<uint64_t>(__builtin_return_address(0)),
          reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()), *frame};
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_REGISTERS_X86_64_H_
