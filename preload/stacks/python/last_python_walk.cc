#include "preload/stacks/python/last_python_walk.h"

#include "preload/base/memory.h"
#include "preload/stacks/python/code_identity.h"
#include "preload/stacks/python/frame_reader.h"

namespace gmt::preload {

// Uses a layout that is known at compile time or, for nullptr, that of the interpreter.
template <const Layout* kLayout>
class FrameFollower {
 public:
  static bool Run(LastPythonWalk* last, const Interpreter& python, uint64_t thread) {
    FrameFollower follower(last, python);
    if (last->interpreter_ != python.identity() || last->generation_ != follower.generation_) {
      last->interpreter_ = python.identity();
      last->generation_ = follower.generation_;
      last->frames_[LastPythonWalk::kMaxFrames].frame = kNoFrame;
      follower.Forget();
    }
    if (follower.layout().code_tlbc == 0 && follower.Follow(follower.Innermost(thread)))
      return true;
    follower.Forget();
    return false;
  }

 private:
  using Known = KnownPythonFrame;

  // In place of the address of a frame, after the outermost one.
  static constexpr uint64_t kNoFrame = ~uint64_t{0};

  FrameFollower(LastPythonWalk* last, const Interpreter& python)
      : last_(*last),
        end_(last->frames_ + LastPythonWalk::kMaxFrames),
        usual_(python.layout()),
        generation_(layout().code_version == 0 ? CodeIdentity::Generation() : 0) {}

  const Layout& layout() const {
    if constexpr (kLayout != nullptr) return *kLayout;
    return usual_;
  }
  FrameReader read() const { return FrameReader(layout()); }

  uint64_t Innermost(uint64_t thread) const {
    const auto frame = Load<uint64_t>(thread + layout().thread_frame);
    return layout().chain == FrameChain::kCFrames ? Load<uint64_t>(frame + layout().cframe_frame)
                                                  : frame;
  }

  Known* first() const { return last_.frames_ + last_.first_; }

  void Forget() {
    last_.first_ = LastPythonWalk::kMaxFrames;
    last_.sum_ = {};
  }

  // Frames that are new are collected below the known ones, innermost first.
  [[gnu::always_inline]] bool Follow(uint64_t frame) {
    Known *known = first(), *changed = last_.frames_;
    while (frame != 0) {
      Known* const met = Find(frame, known);
      if (met == nullptr) {
        if (changed == first() || !Decode(frame, changed)) return false;
        ++changed;
        frame = read().Previous(frame);
        continue;
      }
      known = FollowFrom(met, &frame);
      if (known == end_ && frame == 0) {
        Replace(met, changed);
        return true;
      }
      if (known - met > first() - changed) return false;
      for (Known* same = met; same < known; ++same) *changed++ = *same;
      if (known->frame == frame) ++known;
    }
    Replace(end_, changed);
    return true;
  }

  // Returns a known frame, not before `known`; nullptr if there is none.
  [[gnu::always_inline]] Known* Find(uint64_t frame, Known* known) const {
    Known* const found = end_ - last_.places_[LastPythonWalk::PlaceOf(frame)];
    return found >= known && found->frame == frame ? found : nullptr;
  }

  // Follows the chain from a known frame as long as it leads from one known frame to the next.
  // Returns the end of the frames that it has met; *frame is the one after them, 0 at the end of
  // the chain. That is a known frame only if it has to be collected like a new one.
  [[gnu::always_inline]] Known* FollowFrom(Known* known, uint64_t* frame) {
    uint64_t at = known->frame;
    while (true) {
      if (!IsStill(*known, at) && !Update(known)) [[unlikely]]
        break;
      at = read().Previous(at);
      ++known;
      if (at != known->frame) break;  // so it is after the outermost one
    }
    *frame = at;
    return known;
  }

  // Returns whether the frame would be decoded as it was.
  [[gnu::always_inline]] bool IsStill(const Known& known, uint64_t frame) const {
    const Layout& l = layout();
    if (KindOf(frame) != known.kind) return false;
    if (CanLackCode() && known.has_no_code) return true;
    if (InstructionOf(frame) != known.instruction) return false;
    // If no code object was destroyed since, an address in its bytecode identifies it.
    if (l.code_version == 0 && l.instruction == Instruction::kPointer) return true;
    if (Load<uint64_t>(frame + l.frame_code) != known.code) return false;
    if (l.code_version == 0) return true;
    return read().Number(CodeOf(known.code)) == known.number && known.number != 0;
  }

  // What a frame has beside code and instruction: its owner, or two bytes of which the first says
  // whether it is an entry (3.11).
  uint32_t KindOf(uint64_t frame) const {
    const Layout& l = layout();
    if (l.frame_owner == 0) return 0;
    if (l.frame_is_entry == 0) return Load<uint8_t>(frame + l.frame_owner);
    if (l.frame_is_entry + 1 == l.frame_owner) return Load<uint16_t>(frame + l.frame_is_entry);
    return uint32_t{Load<uint8_t>(frame + l.frame_owner)} << 8 |
           Load<uint8_t>(frame + l.frame_is_entry);
  }
  // In 3.11, which marks entries, the interpreter has no frames of its own.
  bool CanLackCode() const { return layout().frame_owner != 0 && layout().frame_is_entry == 0; }
  uint64_t CodeOf(uint64_t reference) const { return reference & ~uint64_t{layout().code_flags}; }
  uint64_t InstructionOf(uint64_t frame) const {
    const uint64_t at = frame + layout().frame_instruction;
    return layout().instruction == Instruction::kPointer ? Load<uint64_t>(at) : Load<uint32_t>(at);
  }

  // Decodes a frame. Returns false if the ordinary walk may omit it.
  [[gnu::noinline]] bool Decode(uint64_t frame, Known* known) const {
    *known = {};
    known->frame = frame;
    known->kind = KindOf(frame);
    known->has_no_code = read().HasNoCode(frame);
    known->ends_run = known->has_no_code || read().IsEntry(frame);
    if (known->has_no_code) return true;
    known->code = Load<uint64_t>(frame + layout().frame_code);
    known->instruction = InstructionOf(frame);
    const uint64_t code = CodeOf(known->code);
    known->number = static_cast<uint32_t>(read().Number(code));
    if (read().IsInterpretersOwn(frame)) return true;
    if (read().IsIncomplete(frame)) return false;
    known->word = session::InterpreterFrame(code, read().Offset(frame, code));
    known->identity = read().Identity(code, generation_);
    return true;
  }

  // Decodes a known frame again. Returns false, and changes nothing, if the places of others depend
  // on that.
  [[gnu::noinline]] bool Update(Known* known) {
    Known now;
    if (!Decode(known->frame, &now) || now.ends_run != known->ends_run ||
        (now.word == 0) != (known->word == 0)) {
      return false;
    }
    now.outside = known->outside;
    now.runs = known->runs;
    Remove(*known);
    *known = now;
    Add(now);
    return true;
  }

  void Add(const Known& known) {
    if (known.word != 0) last_.sum_.AddInterpreter(known.word, known.identity, known.outside);
  }
  void Remove(const Known& known) {
    if (known.word != 0) last_.sum_.RemoveInterpreter(known.word, known.identity, known.outside);
  }

  // Replaces the frames before `met` by those collected.
  [[gnu::always_inline]] void Replace(const Known* met, const Known* changed_end) {
    if (met != first() || changed_end != last_.frames_) ReplaceSome(met, changed_end);
  }
  [[gnu::noinline]] void ReplaceSome(const Known* met, const Known* changed_end) {
    for (; first() < met; ++last_.first_) Remove(*first());
    while (changed_end > last_.frames_) Push(*--changed_end);
  }

  void Push(const Known& decoded) {
    const Known& outer = *first();
    --last_.first_;
    Known& known = *first();
    known = decoded;
    known.outside = static_cast<uint16_t>(LastPythonWalk::ShownFrom(outer));
    known.runs = static_cast<uint16_t>(outer.runs + (known.ends_run ? 1 : 0));
    if (known.ends_run && known.runs <= LastPythonWalk::kMaxRuns) {
      LastPythonWalk::Run& run = last_.runs_[known.runs - 1];
      run.marker = known.frame;
      run.outside = known.outside;
    }
    last_.places_[LastPythonWalk::PlaceOf(known.frame)] = static_cast<uint8_t>(end_ - first());
    Add(known);
  }

  LastPythonWalk& last_;
  Known* const end_;  // no frame
  const Layout& usual_;
  const uint64_t generation_;
};

Interpreter::FollowFrames LastPythonWalk::FollowerFor(const Layout& layout) {
  return CompiledFor<FrameFollower>(layout);
}

bool LastPythonWalk::PlaceMarkers(const Layout& layout, uint64_t thread) {
  uint32_t run = run_count();
  if (run > kMaxRuns || !frames_[kMaxFrames - 1].ends_run) return false;
  if (layout.chain != FrameChain::kCFrames) return layout.chain == FrameChain::kEntryFrames;
  auto cframe = Load<uint64_t>(thread + layout.thread_frame);
  for (; run > 0; cframe = Load<uint64_t>(cframe + layout.cframe_previous)) {
    if (cframe == 0) return false;
    runs_[--run].marker = cframe;
  }
  return true;
}

}  // namespace gmt::preload
