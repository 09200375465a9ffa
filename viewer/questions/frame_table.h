// viewer/questions/frame_table.h
//
// FrameTable: the frames of a recording as people read them, each described once, and what stacks are
// called. Stacks share frames, so that a table of frames stays small where one of stacks does not.
//
// A stack shows its kMaxFrames innermost frames: only a damaged file, or endless recursion, has more.
//
// Ownership: the examination must outlive it; what it returns lives as long as it.
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

// "python", ..., of a frame that rules have looked at.
Frame::Kind KindOf(const analysis::FrameText& frame);

class FrameTable {
 public:
  static constexpr size_t kMaxFrames = 1024;
  static constexpr size_t kMaxCalls = 4 * kMaxFrames;  // with those that the compiler put into them

  explicit FrameTable(const analysis::Examination& examination)
      : definitions_(examination.definitions()), rules_(examination.rules()) {}

  // Ids of the frames of a stack, innermost first.
  std::vector<uint32_t> FrameIds(uint32_t stack) const;
  // The calls in one frame, innermost first.
  const std::vector<analysis::FrameText>& Calls(uint32_t frame);
  // The calls of a stack, innermost first.
  analysis::FrameTextPointers Frames(uint32_t stack);

  // Where the program did it; null without frames.
  const analysis::FrameText* Own(uint32_t stack) { return NameOf(stack).own; }
  uint32_t Key(uint32_t stack) { return NameOf(stack).key; }
  // "train.py:41 forward", or with the part of a library that it called "train.py:20 main > gpt.py:88
  // MLP.forward"; "unknown" without frames.
  std::string Label(uint32_t stack);
  // The same in two columns: "main > MLP.forward" and "train.py:20 > gpt.py:88".
  std::string Function(uint32_t stack) {
    return SiteFunction(NameOf(stack).own, NameOf(stack).library);
  }
  std::string Place(uint32_t stack) { return SitePlace(NameOf(stack).own, NameOf(stack).library); }
  StackInfo Info(uint32_t stack);

  const format::Definitions& definitions() const { return definitions_; }

 private:
  struct Name {
    const analysis::FrameText* own = nullptr;
    const analysis::FrameText* library = nullptr;  // analysis/stacks/frames.h, LibraryFrame
    uint32_t key = 0;
  };
  const Name& NameOf(uint32_t stack);

  const format::Definitions& definitions_;
  const symbols::FrameRules& rules_;
  absl::node_hash_map<uint32_t, std::vector<analysis::FrameText>> calls_;  // by frame
  absl::flat_hash_map<uint32_t, Name> names_;                              // by stack
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FRAME_TABLE_H_
