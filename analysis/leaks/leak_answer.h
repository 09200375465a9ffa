// analysis/leaks/leak_answer.h
//
// Converts a leak report to the message sent to watching clients (proto/leaks.proto, LeakAnswer).
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_ANSWER_H_
#define GMT_ANALYSIS_LEAKS_LEAK_ANSWER_H_

#include <string>

#include "analysis/leaks/leaks.h"
#include "analysis/stacks/stack_texts.h"

namespace gmt {
class LeakAnswer;
}  // namespace gmt

namespace gmt::analysis {

gmt::LeakAnswer AnswerOf(const LeakReport& report, StackTexts& texts, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_ANSWER_H_
