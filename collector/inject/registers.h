// collector/inject/registers.h
//
// What of the injector depends on the processor: a stopped thread's registers, and the code of the
// call that it is given. One file implements it for each architecture; where there is none,
// IsSupported() is false and nothing else is called.
//
// Thread safety: values are plain; the functions on threads belong to the one that traces them.

#ifndef GMT_COLLECTOR_INJECT_REGISTERS_H_
#define GMT_COLLECTOR_INJECT_REGISTERS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/inject/inject.h"

namespace gmt::inject {

bool IsSupported();

// Everything that a thread computes with.
struct Registers {
  std::vector<uint8_t> general;  // as PTRACE_GETREGSET has them
  std::vector<uint8_t> vector;   // floating point and vector registers, likewise

  uint64_t pc() const;
  uint64_t sp() const;
  // The system call that the thread is in or has just left; -1 where it was stopped elsewhere.
  int64_t syscall() const;
};

bool ReadRegisters(pid_t thread, Registers* registers);
bool WriteGeneralRegisters(pid_t thread, const Registers& registers);
bool WriteVectorRegisters(pid_t thread, const Registers& registers);

// System calls that threads wait in for long, outside of allocators and the loader.
bool IsWaiting(int64_t syscall);
inline constexpr int64_t kNoSyscall = -1;
bool IsFutex(int64_t syscall);

// ---- The call ----------------------------------------------------------------------------------

enum class CallState : uint64_t { kRunning = 1, kReturned = 2, kLeaving = 3 };
enum class CallOutcome : uint64_t { kLoadFailed = 1, kNoFunction = 2, kCalled = 3 };

// The call's data as they lie in the process. The code knows the offsets.
struct CallData {
  uint64_t state;    // CallState; the code's last word to us
  uint64_t outcome;  // CallOutcome
  int64_t result;
  uint64_t dlopen, dlsym, dlerror;  // addresses; dlerror may be 0
  uint64_t dlopen_mode;
  uint64_t old_mask;  // signals blocked before
  uint64_t mask;      // during the call
  uint64_t now[2];    // a timespec
  uint64_t wait_ns;   // how long it waits for us when it has returned
  uint64_t vector;    // address of the vector registers; 64-byte aligned
  uint64_t library, function, options, text, capacity;  // addresses of what stands below
  uint64_t errno_location;                              // a function's address, or 0
  uint64_t errno_at, errno_value;
  uint64_t saved[16];  // general registers, in the order of the code
  char library_text[4096];
  char function_text[64];
  char options_text[kMaxOptions + 1];
  char text_buffer[kMaxText];
};

// Bytes of a library's code page that the call's code takes.
size_t CallCodeSize();
// The code for a thread with these registers, to lie at `address`.
std::vector<uint8_t> MakeCallCode(const Registers& before);
// Whether `pc` is where code that lies at `address` waits for us.
bool IsInWait(uint64_t pc, uint64_t address);

// Bytes below the stack pointer that belong to the function the thread is in.
uint64_t RedZone();
// What the call's code saves and gives back by itself; the address of `data` goes into a register.
void SaveInto(const Registers& before, CallData* data);
// Registers of a thread that begins the call.
Registers CallRegisters(const Registers& before, uint64_t code, uint64_t data, uint64_t stack);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REGISTERS_H_
