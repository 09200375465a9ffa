// preload/stacks/unwind/call_frame.h
//
// CallFrame: how to get from a frame to its caller's at one instruction, as the compiler has
// written it into .eh_frame (LSB 5.0, "Exception Frames"; DWARF 5, 6.4; System V ABI, AMD64
// supplement, 3.7).
//
// Nothing that is read is trusted: every byte comes from a mapped segment of the module, and tables
// that make no sense end in kDamaged.
//
// Thread safety: all functions from any thread and signal handler. No lock, no allocation, less
// than 3 KiB of stack. Cost: about a fifth of a microsecond, which is why walks remember it
// (preload/stacks/unwind/rule_cache.h).

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
  kUndefined,  // it is lost
  kAtCfa,      // in memory, at CFA + number
  kIsCfa,      // it is CFA + number
  kRegister,   // in the register `number`
  kAt,         // in memory, where the expression says
  kIs,         // it is what the expression says
};

struct SavedRegister {
  Saved how;
  union {
    int64_t number;
    uint64_t expression;  // address of its length
  };
};

struct CallFrame {
  // CFA = register + offset, or what the expression says where cfa_expression is set.
  uint32_t cfa_register;
  int64_t cfa_offset;
  uint64_t cfa_expression;  // address of its length; 0: none
  uint64_t tables_end;      // of the segment that expressions lie in
  bool is_signal_frame;     // its "caller" was interrupted by a signal, and may be anywhere
  SavedRegister registers[kRegisterCount];

  // The expression whose length stands at that address.
  ByteReader ExpressionAt(uint64_t address) const {
    ByteReader reader(address, tables_end);
    return reader.Part(reader.Uleb());
  }
};

enum class FoundFrame {
  kFound,
  kNoModule,  // the address belongs to no module that is known
  kNotCode,   // it lies in a module, but not in its code
  kNoTable,   // code without call frame information
  kNoCaller,  // nothing was called there: who made the stack has put a function below its first one
  kDamaged,
};

// Where the kernel keeps three registers of an interrupted thread, counted from the stack pointer
// that a signal handler returns with: in the ucontext_t that it has pushed (Linux,
// arch/x86/include/uapi/asm/sigcontext.h).
inline constexpr int64_t kContextBp = 120, kContextSp = 160, kContextPc = 168;

// `pc` is an address inside the instruction: of a call, that is the return address minus one.
FoundFrame FindCallFrame(uint64_t pc, CallFrame* frame);

// The same from given tables: `index` is the address of an .eh_frame_hdr whose module is `module`.
FoundFrame ReadCallFrame(const LoadedModule& module, uint64_t index, uint64_t pc, CallFrame* frame);

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_CALL_FRAME_H_
