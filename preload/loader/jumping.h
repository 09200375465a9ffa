// preload/loader/jumping.h
//
// GMT_JUMPING(name, choose) defines a function, in assembly, that calls `choose` with its own
// arguments (up to three) and jumps to the function chosen, with these arguments and its caller's
// return address. If there is nothing to jump to, it returns the answer. For functions of the
// loader, which identifies its caller by the return address.

#ifndef GMT_PRELOAD_LOADER_JUMPING_H_
#define GMT_PRELOAD_LOADER_JUMPING_H_

namespace gmt::preload {

// Either a function to jump to, or the answer. Returned in two registers.
struct Choice {
  void* jump_to;
  void* answer;
};

}  // namespace gmt::preload

#define GMT_INTERNAL extern "C" __attribute__((visibility("hidden"), used))

#if defined(__x86_64__)
#define GMT_JUMPING(name, choose)                                   \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name \
      ":\n.cfi_startproc\n"                                         \
      "  endbr64\n"                                                 \
      "  push %rdi\n.cfi_adjust_cfa_offset 8\n"                     \
      "  push %rsi\n.cfi_adjust_cfa_offset 8\n"                     \
      "  push %rdx\n.cfi_adjust_cfa_offset 8\n"                     \
      "  call " #choose                                             \
      "\n"                                                          \
      "  mov %rdx, %rcx\n"                                          \
      "  pop %rdx\n.cfi_adjust_cfa_offset -8\n"                     \
      "  pop %rsi\n.cfi_adjust_cfa_offset -8\n"                     \
      "  pop %rdi\n.cfi_adjust_cfa_offset -8\n"                     \
      "  test %rax, %rax\n"                                         \
      "  jz 1f\n"                                                   \
      "  jmp *%rax\n"                                               \
      "1:\n"                                                        \
      "  mov %rcx, %rax\n"                                          \
      "  ret\n"                                                     \
      ".cfi_endproc\n.size " #name ", . - " #name "\n.previous")
#elif defined(__aarch64__)
#define GMT_JUMPING(name, choose)                                   \
  asm(".text\n.globl " #name "\n.type " #name ", %function\n" #name \
      ":\n.cfi_startproc\n"                                         \
      "  hint #34\n" /* bti c */                                    \
      "  stp x0, x1, [sp, #-32]!\n.cfi_adjust_cfa_offset 32\n"      \
      "  stp x2, x30, [sp, #16]\n.cfi_offset 30, -8\n"              \
      "  bl " #choose                                               \
      "\n"                                                          \
      "  mov x16, x0\n"                                             \
      "  mov x17, x1\n"                                             \
      "  ldp x2, x30, [sp, #16]\n"                                  \
      "  ldp x0, x1, [sp], #32\n.cfi_adjust_cfa_offset -32\n"       \
      "  cbz x16, 1f\n"                                             \
      "  br x16\n"                                                  \
      "1:\n"                                                        \
      "  mov x0, x17\n"                                             \
      "  ret\n"                                                     \
      ".cfi_endproc\n.size " #name ", . - " #name "\n.previous")
#endif

#endif  // GMT_PRELOAD_LOADER_JUMPING_H_
