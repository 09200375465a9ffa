// preload/stacks/python/frame_reader.h
//
// FrameReader: reads single frames of the interpreter by one layout. Its offsets are constants
// if the layout is known at compile time.
//
// Thread safety: reads only frames of the calling thread, which exist while they are read.

#ifndef GMT_PRELOAD_STACKS_PYTHON_FRAME_READER_H_
#define GMT_PRELOAD_STACKS_PYTHON_FRAME_READER_H_

#include <stdint.h>
#include <string.h>

#include <utility>

#include "preload/base/memory.h"
#include "preload/stacks/python/code_identity.h"
#include "preload/stacks/python/layouts.h"

namespace gmt::preload {

class FrameReader {
 public:
  constexpr explicit FrameReader(const Layout& layout) : l_(layout) {}

  uint64_t Previous(uint64_t frame) const { return Word(frame + l_.frame_previous); }

  // Returns whether the frame belongs to the interpreter itself.
  bool HasNoCode(uint64_t frame) const {
    return l_.frame_owner != 0 && Load<uint8_t>(frame + l_.frame_owner) >= kOwnedByInterpreter;
  }
  bool IsEntry(uint64_t frame) const {
    return l_.frame_is_entry != 0 && Load<uint8_t>(frame + l_.frame_is_entry) != 0;
  }

  // Returns whether the frame was pushed but its first line has not begun. Its arguments are still
  // being stored, which may collect garbage and run other code. Only the innermost frame of a run
  // can be in this state.
  bool IsIncomplete(uint64_t frame) const {
    if (l_.frame_owner == 0) return false;
    if (Load<uint8_t>(frame + l_.frame_owner) == kOwnedByGenerator) return false;
    const uint64_t code = Code(frame);
    const auto first = static_cast<uint64_t>(Load<int32_t>(code + l_.code_traceable));
    return static_cast<int64_t>(Word(frame + l_.frame_instruction) -
                                (Bytecode(frame, code) + 2 * first)) < 0;
  }

  uint64_t Code(uint64_t frame) const {
    return Word(frame + l_.frame_code) & ~uint64_t{l_.code_flags};
  }

  uint32_t Offset(uint64_t frame, uint64_t code) const {
    if (l_.instruction == Instruction::kPointer) {
      return static_cast<uint32_t>((Word(frame + l_.frame_instruction) - Bytecode(frame, code)) >>
                                   1);
    }
    const auto index = Load<int32_t>(frame + l_.frame_instruction);
    if (index < 0) [[unlikely]]
      return session::kBeforeInstructions;
    const auto begun = static_cast<uint32_t>(index);
    return l_.instruction == Instruction::kByteIndex ? begun / 2 : begun;
  }

  // Returns the number that identifies a code object regardless of its address, because it is never
  // reused. 0 if it has none: before 3.12, and after four billion code objects.
  uint64_t Number(uint64_t code) const {
    return l_.code_version == 0 ? 0 : Load<uint32_t>(code + l_.code_version);
  }

  // Returns the identity of a code object, which depends on its contents and not only on its
  // address. `generation` is that of cached identities.
  uint64_t Identity(uint64_t code, uint64_t generation) const {
    if (l_.code_version == 0) return CodeIdentity::Find(code, generation, l_);
    const uint64_t number = Number(code);
    // Destructions of code objects without a number are not counted, so their cached identity
    // cannot be reused.
    return number != 0 ? number : CodeIdentity::Find(code, CodeIdentity::Generation(), l_);
  }

  // Between a class and its __init__, 3.12 and later insert a frame that runs a few instructions of
  // the interpreter's own (_Py_InitCleanup in specialize.c). Its code object has no number, and its
  // first line never begins.
  bool IsInterpretersOwn(uint64_t frame) const {
    return l_.code_version != 0 && Number(Code(frame)) == 0 && IsIncomplete(frame);
  }

 private:
  static uint64_t Word(uint64_t address) { return Load<uint64_t>(address); }

  // Returns the start of the bytecode that this frame runs. It is in the code object, but the
  // free-threaded 3.14 gives each thread a copy (_PyFrame_GetBytecode in
  // internal/pycore_interpframe.h).
  uint64_t Bytecode(uint64_t frame, uint64_t code) const {
    if (l_.code_tlbc != 0) {
      const auto copy = Load<int32_t>(frame + l_.frame_tlbc);
      const uint64_t copies = Word(code + l_.code_tlbc);  // their number, then pointers
      if (copy > 0 && copies != 0 && copy < Load<int64_t>(copies)) {
        return Word(copies + 8 + 8 * static_cast<uint64_t>(copy));
      }
    }
    return code + l_.code_bytes;
  }

  const Layout& l_;
};

// Returns the function Code<L>::Run that is compiled for this layout: L is its address if
// interpreters usually have it, otherwise nullptr.
template <template <const Layout*> class Code>
auto CompiledFor(const Layout& layout) {
  auto* run = &Code<nullptr>::Run;
  const auto take_if_usual = [&]<int kMinor>(std::integral_constant<int, kMinor>) {
    static constexpr Layout kUsual = UsualLayout(kMinor);
    if (memcmp(&layout, &kUsual, sizeof(layout)) == 0) run = &Code<&kUsual>::Run;
  };
  const auto try_all = [&]<int... kMinors>(std::integer_sequence<int, kMinors...>) {
    (take_if_usual(std::integral_constant<int, kMinors>()), ...);
  };
  try_all(std::integer_sequence<int, 8, 10, 11, 12, 13, 14>());  // 3.9 has the layout of 3.8
  return run;
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_FRAME_READER_H_
