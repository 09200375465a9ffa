// viewer/questions/frame_table.h
//
// FrameTable: the frames of a recording as displayed, each described once, and the labels of
// stacks. Stacks share frames, so a table of frames is much smaller than one of stacks.
//
// Only the kMaxFrames innermost frames of a stack are shown; only a damaged file or endless
// recursion has more.
//
// Ownership: the examination must outlive it; returned frames live as long as the table.
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_FRAME_TABLE_H_
#define GMT_VIEWER_QUESTIONS_FRAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "analysis/examination/examination.h"
#include "analysis/stacks/frames.h"
#include "viewer/index/names.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

// Returns the kind of a frame to which rules have been applied.
Frame::Kind KindOf(const analysis::FrameText& frame);

// Whether an own frame is the program's Python code. `own` may be null.
bool IsPrograms(const analysis::FrameText* own);

class FrameTable {
 public:
  static constexpr size_t kMaxFrames = 1024;
  static constexpr size_t kMaxCalls = 4 * kMaxFrames;  // including inlined calls

  explicit FrameTable(const analysis::Examination& examination)
      : definitions_(examination.definitions()), rules_(examination.rules()) {}

  // Returns the ids of the frames of a stack, innermost first.
  std::vector<uint32_t> FrameIds(uint32_t stack) const;
  // Returns the calls in one frame (inlined ones included), innermost first.
  const std::vector<analysis::FrameText>& Calls(uint32_t frame);
  // Returns the calls of a stack, innermost first.
  analysis::FrameTextPointers Frames(uint32_t stack);

  // Returns the frame of the program's own code, for memory of a backward pass that of the forward
  // pass unless the program's Python code runs in the backward pass; null if there is none.
  // `forward_stack`: 0 for memory outside of backward passes.
  const analysis::FrameText* Own(uint32_t stack, uint32_t forward_stack = 0);
  uint32_t Key(uint32_t stack) { return NameOf(stack).key; }
  // Returns the label of memory as in `report --json` (answers/stacks/stack_text.h): "main
  // (train.py:20) > MLP.forward (gpt.py:88)", "backward of main (train.py:20)".
  std::string Label(uint32_t stack, uint32_t forward_stack = 0);
  StackInfo Info(uint32_t stack);

  const format::Definitions& definitions() const { return definitions_; }

 private:
  struct Name {
    const analysis::FrameText* own = nullptr;
    const analysis::FrameText* library = nullptr;  // analysis/stacks/frames.h, LibraryFrame
    const analysis::FrameText* called = nullptr;   // LeadingFrame
    uint32_t key = 0;
  };
  // Pointers of a returned name stay valid, the reference does not.
  const Name& NameOf(uint32_t stack);
  static std::string LineOf(const Name& name);
  bool IsRecomputed(uint32_t stack);

  const format::Definitions& definitions_;
  const symbols::FrameRules& rules_;
  absl::node_hash_map<uint32_t, std::vector<analysis::FrameText>> calls_;  // by frame
  absl::flat_hash_map<uint32_t, Name> names_;                              // by stack
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FRAME_TABLE_H_
