// collector/inject/registers.h
//
// The architecture-specific part of the injector: the registers of a stopped thread, and the code
// of the call that it executes. One file per architecture implements it. On other architectures
// IsSupported() is false and nothing else is called.
//
// Thread safety: values are plain; only the tracing thread may call the functions on threads.

#ifndef GMT_COLLECTOR_INJECT_REGISTERS_H_
#define GMT_COLLECTOR_INJECT_REGISTERS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/inject/request.h"

namespace gmt::inject {

bool IsSupported();

// All registers of a thread.
struct Registers {
  std::vector<uint8_t> general;  // in the format of PTRACE_GETREGSET
  std::vector<uint8_t> vector;   // floating point and vector registers, in the same format

  uint64_t pc() const;
  uint64_t sp() const;
  // The system call that the thread is in or has just left; -1 if it was stopped elsewhere.
  int64_t syscall() const;
};

bool ReadRegisters(pid_t thread, Registers* registers);
bool WriteGeneralRegisters(pid_t thread, const Registers& registers);
bool WriteVectorRegisters(pid_t thread, const Registers& registers);

// Returns whether threads often wait in this system call for long, outside allocators and the
// loader.
bool IsWaiting(int64_t syscall);
inline constexpr int64_t kNoSyscall = -1;
bool IsFutex(int64_t syscall);

// ---- The call ----------------------------------------------------------------------------------

enum class CallState : uint64_t { kRunning = 1, kReturned = 2, kLeaving = 3 };
enum class CallOutcome : uint64_t { kLoadFailed = 1, kNoFunction = 2, kCalled = 3 };

// The call's data as stored in the process. The code uses its offsets.
struct CallData {
  uint64_t state;    // CallState; the code's last word to us
  uint64_t outcome;  // CallState; the last word that the code writes for us
  int64_t result;
  uint64_t dlopen, dlsym, dlerror;  // addresses; dlerror may be 0
  uint64_t dlopen_mode;
  uint64_t old_mask;  // signals blocked before
  uint64_t mask;      // during the call
  uint64_t now[2];    // a timespec
  uint64_t wait_ns;   // how long it waits for us after the call
  uint64_t vector;    // address of the vector registers; 64-byte aligned
  uint64_t library, function, options, text, capacity;  // addresses of the texts below
  uint64_t errno_location;                              // a function's address, or 0
  uint64_t errno_at, errno_value;
  uint64_t saved[16];  // general registers, in the order of the code
  char library_text[4096];
  char function_text[64];
  char options_text[kMaxOptions + 1];
  char text_buffer[kMaxText];
};

// The size of the call's code in a library's code page.
size_t CallCodeSize();
// Returns the code for a thread with these registers, to be written to `address` in the process.
std::vector<uint8_t> MakeCallCode(const Registers& before);
// Whether `pc` is in the loop in which code at `address` waits for us.
bool IsInWait(uint64_t pc, uint64_t address);

// Bytes below the stack pointer that the interrupted function may use.
uint64_t RedZone();
// Stores the registers that the call's code restores by itself.
void SaveInto(const Registers& before, CallData* data);
// Returns the registers with which a thread begins the call.
Registers CallRegisters(const Registers& before, uint64_t code, uint64_t data, uint64_t stack);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REGISTERS_H_
