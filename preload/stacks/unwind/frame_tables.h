// preload/stacks/unwind/frame_tables.h
//
// Finds the two records that describe a function's frames in .eh_frame: its FDE, and the CIE that
// it shares with others.
//
// Thread safety, trust: as in call_frame.h.

#ifndef GMT_PRELOAD_STACKS_UNWIND_FRAME_TABLES_H_
#define GMT_PRELOAD_STACKS_UNWIND_FRAME_TABLES_H_

#include <stdint.h>

#include "preload/stacks/unwind/byte_reader.h"
#include "preload/stacks/unwind/loaded_module.h"

namespace gmt::preload {

struct FrameTables {
  uint64_t first_pc;  // of the function
  uint64_t code_alignment;
  int64_t data_alignment;
  uint64_t return_register;
  uint8_t pointer_encoding;
  bool is_signal_frame;
  ByteReader common_program;    // of the CIE
  ByteReader function_program;  // of the FDE
  uint64_t segment_end;
};

enum class FoundTables { kFound, kNone, kDamaged };

// Finds the tables of the function that covers `pc`. `index`: address of the module's
// .eh_frame_hdr.
FoundTables FindFrameTables(const LoadedModule& module, uint64_t index, uint64_t pc,
                            FrameTables* tables);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_FRAME_TABLES_H_
