#include "preload/stacks/python/python_walk.h"

#include "preload/stacks/python/code_identity.h"
#include "preload/stacks/python/frame_reader.h"
#include "session/stack_digest.h"

namespace gmt::preload {
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
      if (cframe_ != 0) cframe_ = preload::Load<uint64_t>(cframe_ + layout_.cframe_previous);
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
        if (!read_.IsInterpretersOwn(frame)) [[likely]]
          Add(frame);
        if (read_.IsEntry(frame)) in_run_ = false;
      }
      frame = previous;
    }
    if (frame == 0) in_run_ = false;
    frame_ = frame;
    EndRun(entry_frame);
  }

  [[gnu::always_inline]] void Add(uint64_t frame) {
    const uint64_t code = read_.Code(frame);
    walk_.frames_[count_].code = code;
    walk_.frames_[count_++].offset = read_.Offset(frame, code);
    fingerprint_ = fingerprint_ * session::kIdentityBase + read_.Identity(code, generation_);
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

template <const Layout* kLayout>
struct LoadBatch {
  static void Run(PythonWalk* walk) { FrameLoader::Load<kLayout>(walk); }
};

}  // namespace

Interpreter::LoadFrames PythonWalk::LoaderFor(const Layout& layout) {
  return CompiledFor<LoadBatch>(layout);
}

}  // namespace gmt::preload
