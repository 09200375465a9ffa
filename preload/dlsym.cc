// dlsym and dlvsym: programs that look CUDA's functions up get our hooks around what they would
// have got.
//
// The loader tells by the return address who asks: RTLD_NEXT and RTLD_DEFAULT depend on it. So the
// exported functions are a few lines of assembly that ask where to go and then jump, with the
// caller's arguments and return address, to the real function; only lookups of hooked names in a
// library of the caller's choice are answered from here, for which nobody's identity matters.
//
//   asked for                     answer
//   a name that is not hooked     the real dlsym, by a jump
//   RTLD_NEXT, RTLD_DEFAULT       the same: an export of ours, where the loader finds that; nothing
//                                 where no library has the function, so that CUDA does not look
//                                 present by our presence
//   a library                     a hook for the function found there; dlopen(NULL) as above
//
// `dlerror` is as the real function left it.

#include <string.h>

#include <atomic>

#include "preload/export.h"
#include "preload/hook.h"
#include "preload/loader.h"
#include "preload/own_image.h"

namespace gmt::preload {
namespace {

// Either a function to jump to, or the answer. Comes back in two registers.
struct Choice {
  void* jump_to;
  void* answer;
};

constinit std::atomic<bool> driver_was_looked_up{false};

bool MayBeHooked(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }

// `look_up(handle)` is the real function, called from here.
template <typename LookUp>
Choice Choose(const char* real_name, void* handle, const char* name, LookUp look_up) {
  void* const real = NextLoaderFunction(real_name);
  if (real == nullptr) return {};
  const Choice jump = {real, nullptr};
  if (!MayBeHooked(name)) return jump;
  if (strcmp(name, "cuInit") == 0) driver_was_looked_up.store(true, std::memory_order_relaxed);
  if (!IsHooked(name)) return jump;
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
    if (DefinedByAnotherLibrary(name)) return jump;
    look_up(RTLD_NEXT);  // fails, and leaves its error
    return {};
  }
  void* function = look_up(handle);
  if (function == nullptr) return {};
  if (!InOwnImage(function)) return {nullptr, HookFor(name, function)};
  // The handle of the program and what it started with, this library among it.
  return {nullptr, look_up(RTLD_NEXT) == nullptr ? nullptr : function};
}

}  // namespace

bool DriverWasLookedUp() { return driver_was_looked_up.load(std::memory_order_relaxed); }

}  // namespace gmt::preload

#define GMT_INTERNAL extern "C" __attribute__((visibility("hidden"), used))

GMT_INTERNAL gmt::preload::Choice GmtChooseDlsym(void* handle, const char* name) {
  return gmt::preload::Choose("dlsym", handle, name,
                              [name](void* where) { return gmt::preload::LibcDlsym(where, name); });
}

GMT_INTERNAL gmt::preload::Choice GmtChooseDlvsym(void* handle, const char* name,
                                                  const char* version) {
  return gmt::preload::Choose("dlvsym", handle, name, [=](void* where) {
    return gmt::preload::LibcDlvsym(where, name, version);
  });
}

#if defined(__x86_64__)
#define GMT_JUMPING_EXPORT(name, choose)                            \
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
#define GMT_JUMPING_EXPORT(name, choose)                            \
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

GMT_JUMPING_EXPORT(dlsym, GmtChooseDlsym);
GMT_JUMPING_EXPORT(dlvsym, GmtChooseDlvsym);
