// answers/leaks/leaks_text.h
//
// Leaks (analysis/leaks/leaks.h) as text and as JSON.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_LEAKS_LEAKS_TEXT_H_
#define GMT_ANSWERS_LEAKS_LEAKS_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/leaks/leaks.h"
#include "analysis/stacks/source_line.h"
#include "analysis/stacks/stack_texts.h"
#include "answers/terminal.h"

namespace gmt::answers {

struct LeaksShown {
  std::string file;                // as named by the user
  size_t top = 3;                  // suspects
  std::vector<std::string> lacks;  // what the recording does not hold
  bool has_history = true;         // false: it is what was live at one moment
};

// Returns the text, with the answer in the first line; at most 25 lines for three suspects.
std::string LeaksText(const analysis::LeakReport& report, const LeaksShown& shown,
                      analysis::SourceLines& sources, const Terminal& terminal);

// Returns one JSON object with all suspects up to `top`, and all frames.
std::string LeaksJson(const analysis::LeakReport& report, const LeaksShown& shown,
                      analysis::StackTexts& stacks, analysis::SourceLines& sources);

// Returns "autograd graph kept, saved by MulBackward0 (2 stacks)".
std::string WhatIsKept(const analysis::LeakSuspect& suspect);
// Returns what mends it, as a sentence. "" for a suspect that is not certain, or that has the cause
// of another one.
std::string FixOf(const analysis::LeakSuspect& suspect);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_LEAKS_LEAKS_TEXT_H_
