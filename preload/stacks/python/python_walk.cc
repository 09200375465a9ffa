#include "preload/stacks/python/python_walk.h"

#include <string.h>

#include "preload/base/memory.h"
#include "preload/stacks/python/code_identity.h"

namespace gmt::preload {
namespace {

uint64_t Word(uint64_t address) { return Load<uint64_t>(address); }

// Reads single frames by one layout; its offsets are constants if it is known at compile time.
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

 private:
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

}  // namespace

// Fills a walk's batch.
class FrameLoader {
 public:
  // Uses a layout that is known at compile time or, for nullptr, that of the interpreter.
  template <const Layout* kLayout>
  static void Load(PythonWalk* walk) {
    const Layout& layout = kLayout != nullptr ? *kLayout : walk->python_.layout();
    FrameLoader(walk, layout).LoadBatch();
  }

 private:
  FrameLoader(PythonWalk* walk, const Layout& layout)
      : walk_(*walk),
        layout_(layout),
        read_(layout),
        frame_(walk->frame_),
        cframe_(walk->cframe_),
        fingerprint_(walk->fingerprint_),
        generation_(layout.code_version == 0 ? CodeIdentity::Generation() : 0),
        in_run_(walk->in_run_) {}

  // Inlined into one function, so that the compiler keeps all state in registers.
  [[gnu::always_inline]] void LoadBatch() {
    uint32_t empty_runs = 0;
    while (frame_ != 0 && count_ < PythonWalk::kBatch) {
      if (layout_.chain == FrameChain::kObjects) {
        AddSingle();
        continue;
      }
      if (!in_run_) BeginRun();
      AddRun();
      if (in_run_) break;
      if (count_ == first_ && ++empty_runs == kMaxSteps) frame_ = 0;
    }
    Store();
  }

  [[gnu::always_inline]] void AddSingle() {
    const uint64_t frame = frame_;
    frame_ = read_.Previous(frame);
    Add(frame);
  }

  [[gnu::always_inline]] void BeginRun() {
    in_run_ = true;
    first_ = count_;
    if (layout_.chain == FrameChain::kCFrames) {
      marker_ = cframe_;
      if (cframe_ != 0) cframe_ = Word(cframe_ + layout_.cframe_previous);
    }
    if (read_.HasNoCode(frame_) || !read_.IsIncomplete(frame_)) [[likely]]
      return;
    in_run_ = !read_.IsEntry(frame_);
    frame_ = read_.Previous(frame_);
  }

  // Adds as many frames of the run as there are, or as there is room for.
  [[gnu::always_inline]] void AddRun() {
    uint64_t frame = frame_, entry_frame = 0;
    while (in_run_ && frame != 0) {
      const uint64_t previous = read_.Previous(frame);
      if (read_.HasNoCode(frame)) {
        in_run_ = false;
        entry_frame = frame;
      } else if (count_ == PythonWalk::kBatch) {
        break;
      } else {
        if (!IsInterpretersOwn(frame)) [[likely]]
          Add(frame);
        if (read_.IsEntry(frame)) in_run_ = false;
      }
      frame = previous;
    }
    if (frame == 0) in_run_ = false;
    frame_ = frame;
    EndRun(entry_frame);
  }

  // Between a class and its __init__, 3.12 and later insert a frame that runs a few instructions of
  // the interpreter's own (_Py_InitCleanup in specialize.c). Its code object has no number, and its
  // first line never begins.
  [[gnu::always_inline]] bool IsInterpretersOwn(uint64_t frame) const {
    return layout_.code_version != 0 && read_.Number(read_.Code(frame)) == 0 &&
           read_.IsIncomplete(frame);
  }

  [[gnu::always_inline]] void Add(uint64_t frame) {
    const uint64_t code = read_.Code(frame);
    walk_.frames_[count_].code = code;
    walk_.frames_[count_++].offset = read_.Offset(frame, code);
    fingerprint_ = (fingerprint_ ^ Identity(code)) * 0x8ebc6af09c88c6e3;
  }

  [[gnu::always_inline]] uint64_t Identity(uint64_t code) const {
    if (layout_.code_version == 0) return CodeIdentity::Find(code, generation_, layout_);
    const uint64_t number = read_.Number(code);
    // Destructions of code objects without a number are not counted, so their cached identity
    // cannot be reused.
    return number != 0 ? number : CodeIdentity::Find(code, CodeIdentity::Generation(), layout_);
  }

  // A run without frames leaves no entry.
  [[gnu::always_inline]] void EndRun(uint64_t entry_frame) {
    if (count_ == first_) return;
    if (layout_.chain == FrameChain::kEntryFrames) {
      marker_ = in_run_ ? FindEntryFrame() : entry_frame;
    }
    walk_.markers_[run_] = marker_;
    walk_.ends_[run_++] = static_cast<uint8_t>(count_);
  }

  // Returns the frame that ends the run that continues after this batch.
  [[gnu::always_inline]] uint64_t FindEntryFrame() const {
    uint64_t frame = frame_;
    for (uint32_t steps = 0; frame != 0 && steps < kMaxSteps; ++steps) {
      if (read_.HasNoCode(frame)) return frame;
      frame = read_.Previous(frame);
    }
    return 0;
  }

  [[gnu::always_inline]] void Store() {
    walk_.frame_ = frame_;
    walk_.cframe_ = cframe_;
    walk_.fingerprint_ = fingerprint_;
    walk_.in_run_ = in_run_;
    walk_.next_ = walk_.run_ = 0;
    walk_.count_ = count_;
    const bool single = layout_.chain == FrameChain::kObjects;
    walk_.run_end_ = count_ == 0 ? 0 : single ? 1u : walk_.ends_[0];
  }

  static constexpr uint32_t kMaxSteps = 4096;  // limit on frames examined to find one that ends a
                                               // run

  PythonWalk& walk_;
  const Layout& layout_;
  const FrameReader read_;
  uint64_t frame_, cframe_, fingerprint_;
  const uint64_t generation_;  // generation of cached identities
  bool in_run_;
  uint64_t marker_ = 0;
  uint32_t count_ = 0, run_ = 0;
  uint32_t first_ = 0;  // index of the run's first frame in this batch
};

namespace {

template <int kMinor>
inline constexpr Layout kUsual = UsualLayout(kMinor);

template <int kMinor>
Interpreter::LoadFrames LoaderIfUsual(const Layout& layout) {
  return memcmp(&layout, &kUsual<kMinor>, sizeof(layout)) == 0 ? FrameLoader::Load<&kUsual<kMinor>>
                                                               : nullptr;
}

template <int... kMinors>
Interpreter::LoadFrames LoaderOfOne(const Layout& layout) {
  Interpreter::LoadFrames found = nullptr;
  (void)((found = LoaderIfUsual<kMinors>(layout)) || ...);
  return found != nullptr ? found : FrameLoader::Load<nullptr>;
}

}  // namespace

Interpreter::LoadFrames PythonWalk::LoaderFor(const Layout& layout) {
  return LoaderOfOne<8, 10, 11, 12, 13, 14>(layout);  // 3.9 has the layout of 3.8
}

}  // namespace gmt::preload
