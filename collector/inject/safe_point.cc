#include "collector/inject/safe_point.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gmt::inject {
namespace {

SafePoint Unsafe(std::string why) { return {false, std::move(why)}; }

// Returns whether a libc function holds locks that the loader needs, or may be in the middle of
// changing the process. The names are in libc's table of exported symbols, which is never stripped.
bool HoldsLocks(std::string_view function) {
  constexpr std::string_view kNames[] = {"malloc",
                                         "free",
                                         "calloc",
                                         "realloc",
                                         "memalign",
                                         "aligned_alloc",
                                         "posix_memalign",
                                         "valloc",
                                         "pvalloc",
                                         "malloc_trim",
                                         "malloc_info",
                                         "mallopt",
                                         "mallinfo",
                                         "mallinfo2",
                                         "reallocarray",
                                         "dl_iterate_phdr",
                                         "dlopen",
                                         "dlclose",
                                         "dlsym",
                                         "dlvsym",
                                         "dladdr",
                                         "dladdr1",
                                         "dlinfo",
                                         "dlmopen",
                                         "dlerror",
                                         "_dl_find_object",
                                         "fork",
                                         "_Fork",
                                         "vfork",
                                         "__libc_fork",
                                         "exit",
                                         "quick_exit",
                                         "abort",
                                         "__cxa_finalize",
                                         "pthread_exit",
                                         "posix_spawn",
                                         "posix_spawnp",
                                         "__libc_freeres",
                                         "__libc_start_call_init"};
  for (const std::string_view name : kNames) {
    if (function == name) return true;
  }
  return function.starts_with("__libc_malloc") || function.starts_with("__libc_free") ||
         function.starts_with("__libc_calloc") || function.starts_with("__libc_realloc") ||
         function.starts_with("__libc_memalign");
}

// Whether it is a variant of operator new or delete.
bool IsOperatorNewOrDelete(std::string_view function) {
  return function.starts_with("_Znw") || function.starts_with("_Zna") ||
         function.starts_with("_Zdl") || function.starts_with("_Zda");
}

// The driver and its tools have their own locks, which the library that we load may also need.
bool IsDriver(const Mapping& mapping) {
  const std::string_view name = mapping.Name();
  return name.starts_with("libcuda.so") || name.starts_with("libcupti.so") ||
         name.starts_with("libnvidia-");
}

// Whether it is a thread's own stack: the main thread's, or one with a guard page below it.
bool IsThreadStack(const MemoryMap& map, const Mapping& stack) {
  if (stack.path == "[stack]") return true;
  const auto it =
      std::find_if(map.begin(), map.end(), [&](const Mapping& m) { return m.end == stack.start; });
  return stack.writable && it != map.end() && !it->readable && !it->writable && !it->executable;
}

// ---- Unwinding ---------------------------------------------------------------------------------

// The process being unwound, for the callback below, which does not receive it.
thread_local pid_t unwound = 0;

// Opens files under /proc/PID/root, because the process may have another root. A replaced file is
// called "... (deleted)" and is not found, so that the tables of another file are never used.
int FindElf(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base, char** file,
            Elf** elf) {
  if (name[0] != '/') return dwfl_linux_proc_find_elf(module, userdata, name, base, file, elf);
  const std::string path = absl::StrCat("/proc/", unwound, "/root", name);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) *file = strdup(path.c_str());
  return fd;
}

int FindNoDebugFile(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                    GElf_Word, char**) {
  return -1;
}

struct Walk {
  std::vector<uint64_t> frames;
};

int KeepFrame(Dwfl_Frame* frame, void* data) {
  constexpr size_t kMaxFrames = 512;
  Dwarf_Addr pc;
  bool is_activation;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  auto* walk = static_cast<Walk*>(data);
  // A return address may be the first byte of the next function.
  walk->frames.push_back(is_activation ? pc : pc - 1);
  return walk->frames.size() < kMaxFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// Returns the frames, innermost first. *complete: the stack was unwound down to the thread's start.
std::vector<uint64_t> Unwind(pid_t pid, pid_t thread, bool* complete) {
  static const Dwfl_Callbacks kCallbacks = {FindElf, FindNoDebugFile, nullptr, nullptr};
  *complete = false;
  unwound = pid;
  Walk walk;
  Dwfl* dwfl = dwfl_begin(&kCallbacks);
  if (dwfl == nullptr) return {};
  if (dwfl_linux_proc_report(dwfl, pid) == 0 && dwfl_report_end(dwfl, nullptr, nullptr) == 0 &&
      dwfl_linux_proc_attach(dwfl, pid, true) == 0) {
    *complete = dwfl_getthread_frames(dwfl, thread, KeepFrame, &walk) == 0;
  }
  dwfl_end(dwfl);
  return walk.frames;
}

}  // namespace

SafePoint CheckRegisters(const Registers& registers, const MemoryMap& map) {
  const Mapping* code = FindMapping(map, registers.pc());
  if (code == nullptr) return Unsafe("running code that is mapped nowhere");
  const Mapping* stack = FindMapping(map, registers.sp());
  if (stack == nullptr || !IsThreadStack(map, *stack))
    return Unsafe("on a stack that is not a thread's own");
  const bool grows = stack->path == "[stack]";
  if (!grows && registers.sp() - stack->start < kStackRoom)
    return Unsafe("on a stack that is nearly full");
  if (IsLoader(*code)) return Unsafe("in the loader");
  if (IsAllocator(*code)) return Unsafe(absl::StrCat("in ", std::string(code->Name())));
  if (IsDriver(*code)) return Unsafe(absl::StrCat("in ", std::string(code->Name())));
  if (IsWaiting(registers.syscall())) return {true, ""};
  if (registers.syscall() >= 0) return Unsafe(absl::StrCat("in system call ", registers.syscall()));
  if (IsLibc(*code)) return Unsafe("in libc");
  return {true, ""};
}

SafePoint CheckFrames(pid_t pid, pid_t thread, const Registers& registers, const MemoryMap& map,
                      const RemoteImage& libc, const OwnAllocators& allocators) {
  // The thread may hold a lock or wait for one.
  const bool may_be_locked = registers.syscall() < 0 || IsFutex(registers.syscall());
  bool complete;
  bool innermost = true;  // only libc's frames so far
  const std::vector<uint64_t> frames = Unwind(pid, thread, &complete);
  for (const uint64_t pc : frames) {
    const Mapping* code = FindMapping(map, pc);
    if (code == nullptr) continue;
    if (IsLoader(*code)) return Unsafe("called by the loader");
    if (IsAllocator(*code) || IsDriver(*code))
      return Unsafe(absl::StrCat("inside of ", std::string(code->Name())));
    const bool is_libc = IsLibc(*code);
    if (!is_libc && !allocators.Holds(*code)) {
      innermost = false;
      continue;
    }
    const std::vector<std::string_view> functions =
        is_libc ? libc.FunctionsAt(pc) : allocators.FunctionsAt(*code, pc);
    for (const std::string_view function : functions) {
      if (HoldsLocks(function) || (!is_libc && IsOperatorNewOrDelete(function)))
        return Unsafe(absl::StrCat("inside of ", std::string(function)));
    }
    // An internal function of the allocator that its caller tail-called.
    if (!is_libc && innermost && functions.empty() && may_be_locked)
      return Unsafe(absl::StrCat("in an unnamed function of ", std::string(code->Name()),
                                 ", which has its own allocator"));
    innermost &= is_libc;
  }
  if (!complete && IsFutex(registers.syscall()))
    return Unsafe("waiting for a lock, in code whose stack cannot be unwound");
  if (!complete && may_be_locked && allocators.any())
    return Unsafe("in code whose stack cannot be unwound, in a program with its own allocator");
  return {true, ""};
}

}  // namespace gmt::inject
