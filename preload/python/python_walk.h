// preload/python/python_walk.h
//
// PythonWalk: this thread's Python frames, innermost first, read from the interpreter's own frame
// structures without the GIL. Only a thread itself pushes and pops its frames, each frame owns its
// code object, and names and line tables never change: so what is read stays as it is while one
// reads. Nothing is allocated, no reference count is touched, no Python code runs.
//
// The interpreter's eval function runs Python frames, one or several; those form a *run*. It keeps
// a record on its own stack (the run's marker), which tells between which native frames the run
// belongs:
//
//   native (innermost first)     stack          Python
//   cudaMalloc                   |
//   torch::empty                 |
//   eval function                | marker 1 --> run 1: forward, <lambda>
//   slot_tp_call, PyObject_Call  |
//   eval function                | marker 2 --> run 2: train, <module>
//   main                         |
//
//   PythonWalk python(interpreter);
//   for (each native frame, innermost first) {
//     note it;
//     if (python.IsInterpretedBy(native)) while (python.Next(&frame)) note frame;
//   }
//
// What is left when the native frames have ended (python.done() is false) could not be placed.
// Frames that the public functions hide are left out here too: those of the interpreter itself, and
// those that have not begun.
//
// Thread safety: one walk on one thread; in signal handlers, but see Interpreter::OwnsAddress.
// Cost: docs/overhead.md. A frame is one dependent load; the rest runs beside it.

#ifndef GMT_PRELOAD_PYTHON_PYTHON_WALK_H_
#define GMT_PRELOAD_PYTHON_PYTHON_WALK_H_

#include <stdint.h>
#include <string.h>

#include "preload/python/interpreter.h"
#include "preload/unwind/native_frame.h"

namespace gmt::preload {

struct PythonFrame {
  uint64_t code;    // PyCodeObject*
  uint32_t offset;  // of the instruction in its bytecode, in units of 2 bytes
};

class PythonWalk {
 public:
  explicit PythonWalk(const Interpreter& python)
      : layout_(python.layout()),
        python_(python),
        below_(reinterpret_cast<uint64_t>(__builtin_frame_address(0))) {
    const Interpreter::Thread thread = python.CurrentThread();
    unreadable_ = thread.unreadable;
    if (thread.state != 0) Begin(thread.state);
  }
  PythonWalk(const PythonWalk&) = delete;
  PythonWalk& operator=(const PythonWalk&) = delete;

  // No frames are left.
  bool done() const { return count_ == 0; }

  // The thread is known to the interpreter, and its frames cannot be read (now, or at all).
  bool unreadable() const { return unreadable_; }

  // Whether the next run belongs behind this native frame. REQUIRES: asked of each native frame in
  // turn, innermost first.
  bool IsInterpretedBy(const NativeFrame& native) {
    if (done()) return false;
    if (layout_.chain == FrameChain::kObjects) {
      return python_.IsEval(native.exact ? native.address : native.address - 1);
    }
    // On another stack (a signal's, a coroutine's) the addresses jump; nothing lies in between.
    const bool holds = marker_ >= below_ && marker_ < native.cfa;
    below_ = native.cfa;
    return holds;
  }

  // The next frame of the run; false at its end, and the next run is the current one.
  bool Next(PythonFrame* frame) {
    if (next_ == count_ && !LoadMore()) return false;
    Describe(frames_[next_++], frame);
    return true;
  }

  // Stands for the code objects of all frames given so far: their identity and not only their
  // addresses, which are used again when code objects come and go.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  static constexpr uint32_t kBatch = 48;     // frames looked at in advance
  static constexpr uint32_t kMaxRun = 4096;  // frames; a longer run is not placed

  template <typename T>
  static T Load(uint64_t address) {
    T value;
    memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
    return value;
  }
  static uint64_t Word(uint64_t address) { return Load<uint64_t>(address); }

  // Object references of 3.14 carry flags in their low bits.
  static uint64_t Untagged(uint64_t reference) { return reference & ~uint64_t{7}; }

  uint64_t CodeOf(uint64_t frame) const { return Untagged(Word(frame + layout_.frame_code)); }

  void Begin(uint64_t thread) {
    frame_ = Word(thread + layout_.thread_frame);
    if (layout_.chain == FrameChain::kCFrames) {
      cframe_ = frame_;
      frame_ = Word(cframe_ + layout_.cframe_frame);
    }
    LoadRun();
  }

  bool EndsRun(uint64_t frame) const {
    return layout_.frame_is_entry != 0 && Load<uint8_t>(frame + layout_.frame_is_entry) != 0;
  }
  bool HasNoCode(uint64_t frame) const {
    return Load<uint8_t>(frame + layout_.frame_owner) >= kOwnedByInterpreter;
  }

  // It was pushed, but its first line has not begun: arguments are still being put in place, which
  // may collect garbage and run other code. Only the innermost of a run can be like that.
  bool IsIncomplete(uint64_t frame) const {
    if (Load<uint8_t>(frame + layout_.frame_owner) == kOwnedByGenerator) return false;
    const uint64_t code = CodeOf(frame);
    const auto first = static_cast<uint64_t>(Load<int32_t>(code + layout_.code_traceable));
    return static_cast<int64_t>(Word(frame + layout_.frame_instruction) -
                                (Bytecode(frame, code) + 2 * first)) < 0;
  }

  // Where the bytecode begins that this frame runs: in the code object, but the free-threaded 3.14
  // gives each thread a copy (_PyFrame_GetBytecode in internal/pycore_interpframe.h).
  uint64_t Bytecode(uint64_t frame, uint64_t code) const {
    if (__builtin_expect(layout_.code_tlbc != 0, 0)) {
      const auto copy = Load<int32_t>(frame + layout_.frame_tlbc);
      if (copy > 0) {
        const uint64_t copies = Word(code + layout_.code_tlbc);  // size, then pointers
        if (copies != 0 && copy < Load<int64_t>(copies)) {
          return Word(copies + 8 + 8 * static_cast<uint64_t>(copy));
        }
      }
    }
    return code + layout_.code_bytes;
  }

  // Finds the next run that has frames: its first ones, and its marker.
  void LoadRun() {
    next_ = count_ = 0;
    in_run_ = true;
    while (count_ == 0 && frame_ != 0) {
      if (layout_.chain == FrameChain::kObjects) {
        frames_[count_++] = frame_;
        frame_ = Word(frame_ + layout_.frame_previous);
        in_run_ = false;
      } else if (layout_.chain == FrameChain::kCFrames) {
        LoadRunOfCFrame();
      } else {
        LoadRunToEntry();
      }
    }
  }

  void LoadRunOfCFrame() {
    marker_ = cframe_;
    if (cframe_ != 0) cframe_ = Word(cframe_ + layout_.cframe_previous);
    if (IsHidden(frame_)) {
      in_run_ = !EndsRun(frame_);
      frame_ = Word(frame_ + layout_.frame_previous);
      if (!in_run_) return;
    }
    Gather();
  }

  bool IsHidden(uint64_t frame) const { return !HasNoCode(frame) && IsIncomplete(frame); }

  // The next frames of the run, as many as there is room for.
  void Gather() {
    uint64_t frame = frame_;
    uint32_t n = 0;
    while (frame != 0 && n < kBatch) {
      const uint64_t previous = Word(frame + layout_.frame_previous);
      if (HasNoCode(frame)) {
        in_run_ = false;
        marker_ = layout_.chain == FrameChain::kEntryFrames ? frame : marker_;
        frame = previous;
        break;
      }
      frames_[n++] = frame;
      in_run_ = !EndsRun(frame);
      frame = previous;
      if (!in_run_) break;
    }
    frame_ = frame;
    count_ = n;
  }

  void LoadRunToEntry() {
    if (IsHidden(frame_)) frame_ = Word(frame_ + layout_.frame_previous);
    marker_ = 0;
    Gather();
    if (!in_run_) return;
    uint64_t frame = frame_;
    for (uint32_t n = kBatch; frame != 0 && n < kMaxRun; ++n) {
      if (HasNoCode(frame)) {
        marker_ = frame;
        return;
      }
      frame = Word(frame + layout_.frame_previous);
    }
  }

  // More frames of this run. False: it has ended, and the next one is loaded.
  bool LoadMore() {
    if (count_ == 0) return false;
    if (in_run_ && frame_ != 0) {
      next_ = count_ = 0;
      Gather();
      if (count_ != 0) return true;
    }
    LoadRun();
    return false;
  }

  void Describe(uint64_t at, PythonFrame* frame) {
    const uint64_t code = CodeOf(at);
    frame->code = code;
    if (layout_.instruction == Instruction::kPointer) {
      const uint64_t instruction = Word(at + layout_.frame_instruction);
      frame->offset = static_cast<uint32_t>((instruction - Bytecode(at, code)) >> 1);
    } else {
      const auto index = Load<int32_t>(at + layout_.frame_instruction);
      frame->offset = index < 0 ? 0
                      : layout_.instruction == Instruction::kUnitIndex
                          ? static_cast<uint32_t>(index)
                          : static_cast<uint32_t>(index) / 2;
    }
    AddToFingerprint(code);
  }

  void AddToFingerprint(uint64_t code) {
    const uint64_t table = Word(code + layout_.code_line_table);
    const uint64_t name = Word(code + layout_.code_short_name);
    const uint64_t file = Word(code + layout_.code_file);
    uint64_t line = Load<uint32_t>(code + layout_.code_first_line);
    if (layout_.code_version != 0) {
      line |= static_cast<uint64_t>(Load<uint32_t>(code + layout_.code_version)) << 32;
    } else {
      // No number of its own: another one may stand at the same address with a table, a name and
      // a file at the addresses of the one before. What the table says tells them apart.
      const uint64_t size = Word(table + layout_.object_size);
      uint64_t beginning = Word(table + layout_.bytes_data);
      if (size < 8) beginning &= (uint64_t{1} << 8 * size) - 1;
      line = (line | size << 32) + beginning * 0x8ebc6af09c88c6e3;
    }
    const uint64_t one = (table ^ name << 20 ^ file << 40) * 0x9e3779b97f4a7c15 +
                         (line ^ line >> 29) * 0xd1b54a32d192ed03;
    fingerprint_ = (fingerprint_ << 7 | fingerprint_ >> 57) ^ (one ^ one >> 32);
  }

  const Layout& layout_;
  const Interpreter& python_;
  uint64_t below_;       // the innermost address of the stack that was not asked about yet
  uint64_t marker_ = 0;  // of this run; 0: not known
  uint64_t frame_ = 0;   // the frame behind those that are loaded
  uint64_t cframe_ = 0;  // of the next run
  uint64_t fingerprint_ = 0;
  uint32_t next_ = 0, count_ = 0;
  bool in_run_ = false;  // frame_ belongs to this run
  bool unreadable_ = false;
  uint64_t frames_[kBatch];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PYTHON_PYTHON_WALK_H_
