// preload/stacks/unwind/testing/table_copy.h

#ifndef GMT_PRELOAD_STACKS_UNWIND_TESTING_TABLE_COPY_H_
#define GMT_PRELOAD_STACKS_UNWIND_TESTING_TABLE_COPY_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "preload/stacks/unwind/call_frame.h"
#include "preload/stacks/unwind/rule.h"

namespace gmt::preload::testing {

// Reads the rule at `offset` of TableBuilder's functions from a copy of the tables that is followed
// by no other memory, so that a sanitizer detects reads beyond them. The tables are
// position-independent, so they may be moved.
inline void ReadAnywhere(const uint8_t* bytes, size_t size, uint64_t offset) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  std::memcpy(copy.get(), bytes, size);
  const auto begin = reinterpret_cast<uint64_t>(copy.get());
  Elf64_Phdr header = {};
  header.p_type = PT_LOAD;
  header.p_flags = PF_R;
  header.p_vaddr = begin;
  header.p_memsz = size;
  const LoadedModule module = {begin, begin + size, 0, &header, 1, "", nullptr};
  const uint64_t pc = begin + 0x10000 + offset;
  CallFrame frame;
  if (ReadCallFrame(module, begin, pc, &frame) == FoundFrame::kFound) ToRule(frame, pc);
}

}  // namespace gmt::preload::testing

#endif  // GMT_PRELOAD_STACKS_UNWIND_TESTING_TABLE_COPY_H_
