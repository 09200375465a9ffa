// preload/stacks/unwind/call_frame.h
//
// CallFrame: how to get from a frame to its caller at one instruction, as described by the compiler
// in .eh_frame (LSB 5.0, "Exception Frames"; DWARF 5, 6.4; System V ABI, AMD64 supplement, 3.7).
//
// No input is trusted: every byte is read from a mapped segment of the module, and inconsistent
// tables result in kDamaged.
//
// Thread safety: all functions may be called from any thread and signal handler. No lock, no
// allocation, less than 3 KiB of stack. Cost: about a fifth of a microsecond, which is why walks
// cache the results (preload/stacks/unwind/rule_cache.h).

#ifndef GMT_PRELOAD_STACKS_UNWIND_CALL_FRAME_H_
#define GMT_PRELOAD_STACKS_UNWIND_CALL_FRAME_H_

#include <stdint.h>

#include "preload/stacks/unwind/byte_reader.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/registers.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

enum class Saved : uint8_t {
  kNot,        // the caller's value is still in the register
  kUndefined,  // the value is lost
  kAtCfa,      // in memory, at CFA + number
  kIsCfa,      // the value is CFA + number
  kRegister,   // in the register `number`
  kAt,         // in memory, at the address given by the expression
  kIs,         // the value of the expression
};

struct SavedRegister {
  Saved how;
  union {
    int64_t number;
    uint64_t expression;  // address of its length
  };
};

struct CallFrame {
  // CFA = register + offset, or the value of cfa_expression if that is set.
  uint32_t cfa_register;
  int64_t cfa_offset;
  uint64_t cfa_expression;  // address of its length; 0: none
  uint64_t tables_end;      // end of the segment that contains the expressions
  bool is_signal_frame;     // its "caller" was interrupted by a signal, at any instruction
  SavedRegister registers[kRegisterCount];

  // Returns the expression whose length is stored at that address.
  ByteReader ExpressionAt(uint64_t address) const {
    ByteReader reader(address, tables_end);
    return reader.Part(reader.Uleb());
  }
};

enum class FoundFrame {
  kFound,
  kNoModule,  // the address belongs to no known module
  kNotCode,   // it lies in a module, but not in its code
  kNoTable,   // code without call frame information
  kNoCaller,  // nothing was called there: the creator of the stack put a function below its first
              // one
  kDamaged,
};

// Offsets of three registers of an interrupted thread, from the stack pointer with which a signal
// handler returns, in the ucontext_t that the kernel has pushed (Linux,
// arch/x86/include/uapi/asm/sigcontext.h).
inline constexpr int64_t kContextBp = 120, kContextSp = 160, kContextPc = 168;

// `pc` is an address inside the instruction: for a call, the return address minus one.
FoundFrame FindCallFrame(uint64_t pc, CallFrame* frame);

// Same, for given tables: `index` is the address of an .eh_frame_hdr that belongs to `module`.
FoundFrame ReadCallFrame(const LoadedModule& module, uint64_t index, uint64_t pc, CallFrame* frame);

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_CALL_FRAME_H_
