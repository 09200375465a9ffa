// answers/leaks/leaks_text.h
//
// What leaks (analysis/leaks/leaks.h), for people and for programs.
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
  std::string file;                // as the user named it
  size_t top = 3;                  // suspects
  std::vector<std::string> lacks;  // what the recording does not hold
};

// The answer in the first line; at most 25 lines with three suspects.
std::string LeaksText(const analysis::LeakReport& report, const LeaksShown& shown,
                      analysis::SourceLines& sources, const Terminal& terminal);

// One JSON object; all suspects up to `top`, all frames.
std::string LeaksJson(const analysis::LeakReport& report, const LeaksShown& shown,
                      analysis::StackTexts& stacks);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_LEAKS_LEAKS_TEXT_H_
