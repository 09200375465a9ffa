// analysis/stacks/stack_texts.h
//
// StackTexts: the stacks of a recording for display (analysis/stacks/frames.h). Each frame is
// described once, regardless of how many stacks contain it: describing a frame evaluates every
// rule, and recordings with 100,000 stacks have only a few thousand frames.
//
// Ownership: the definitions and the rules must outlive it; returned references live as long as it
// does.
// Thread safety: one thread at a time. Cost: a look-up for a stack requested before; otherwise,
// except for Library(), a copy of each of its frames.

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

  // Innermost first; empty for 0 and for undefined ids.
  const std::vector<FrameText>& Frames(uint32_t stack) { return Of(stack).frames; }
  // Their OwnFrame and LeadingFrame; nullptr without frames.
  const FrameText* Own(uint32_t stack) { return FrameAt(Of(stack), Of(stack).own); }
  const FrameText* Leading(uint32_t stack) { return FrameAt(Of(stack), Of(stack).leading); }
  // Their LibraryFrame; nullptr if there is none.
  const FrameText* InLibrary(uint32_t stack) { return FrameAt(Of(stack), Of(stack).in_library); }
  // The program's own line for memory of a backward pass: that of the forward pass, unless the
  // program's Python code runs in the backward pass. `forward_stack`: 0 for memory outside backward
  // passes.
  const FrameText* Own(uint32_t stack, uint32_t forward_stack);
  // LibraryOf() these frames.
  // Copies no frame: cheap for stacks whose frames are never requested.
  const std::string& Library(uint32_t stack);

 private:
  struct Text {
    std::vector<FrameText> frames;
    int own = -1, leading = -1, in_library = -1;
  };
  // A frame of the recording, with the calls that the compiler inlined into it.
  struct Described {
    std::vector<FrameText> texts;
    std::string library;  // that of the innermost call of a known library; "" if there is none
  };
  const Text& Of(uint32_t stack);
  const Described& Describe(uint32_t frame);
  static const FrameText* FrameAt(const Text& text, int index) {
    return index < 0 ? nullptr : &text.frames[static_cast<size_t>(index)];
  }

  const format::Definitions& definitions_;
  const symbols::FrameRules& rules_;
  absl::node_hash_map<uint32_t, Text> texts_;  // by stack
  absl::node_hash_map<uint32_t, Described> frames_;
  absl::flat_hash_map<uint32_t, const std::string*> libraries_;  // by stack; in frames_, or static
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_STACK_TEXTS_H_
