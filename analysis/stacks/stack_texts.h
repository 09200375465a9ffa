// analysis/stacks/stack_texts.h
//
// StackTexts: the stacks of a recording as people read them (analysis/stacks/frames.h). Each frame is
// described once, however many stacks pass through it: what a frame is takes every rule, and
// recordings with 100,000 stacks have a few thousand frames.
//
// Ownership: the definitions and the rules must outlive it; what it returns lives as long as it.
// Thread safety: one thread at a time. Cost: a look-up for a stack that was asked for before, a copy of
// each of its frames for another one.

#ifndef GMT_ANALYSIS_STACKS_STACK_TEXTS_H_
#define GMT_ANALYSIS_STACKS_STACK_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "analysis/stacks/frames.h"
#include "format/definitions.h"
#include "symbols/frame_rules.h"

namespace gmt::analysis {

class StackTexts {
 public:
  explicit StackTexts(const format::Definitions& definitions,
                      const symbols::FrameRules& rules = symbols::FrameRules::BuiltIn())
      : definitions_(definitions), rules_(rules) {}

  const format::Definitions& definitions() const { return definitions_; }

  // Innermost first; empty for 0 and for ids that were never defined.
  const std::vector<FrameText>& Frames(uint32_t stack) { return Of(stack).frames; }
  // OwnFrame and LeadingFrame of them; null without frames.
  const FrameText* Own(uint32_t stack) { return FrameAt(Of(stack), Of(stack).own); }
  const FrameText* Leading(uint32_t stack) { return FrameAt(Of(stack), Of(stack).leading); }
  // LibraryFrame of them; null for none.
  const FrameText* InLibrary(uint32_t stack) { return FrameAt(Of(stack), Of(stack).in_library); }
  // The program's own line of a backward pass is that of the forward pass, unless Python code of the
  // program runs in it. `forward_stack`: 0 for what belongs to no backward pass.
  const FrameText* Own(uint32_t stack, uint32_t forward_stack);
  // LibraryOf them.
  const std::string& Library(uint32_t stack) { return Of(stack).library; }

 private:
  struct Text {
    std::vector<FrameText> frames;
    int own = -1, leading = -1, in_library = -1;
    std::string library;
  };
  // A frame of the recording, with the calls that the compiler put into it.
  struct Described {
    std::vector<FrameText> texts;
    std::string library;  // of the innermost that is a known one's; "" where none is
  };
  const Text& Of(uint32_t stack);
  const Described& Describe(uint32_t frame);
  static const FrameText* FrameAt(const Text& text, int index) {
    return index < 0 ? nullptr : &text.frames[static_cast<size_t>(index)];
  }

  const format::Definitions& definitions_;
  const symbols::FrameRules& rules_;
  absl::node_hash_map<uint32_t, Text> texts_;  // by stack
  absl::flat_hash_map<uint32_t, Described> frames_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_STACK_TEXTS_H_
