// answers/oom/oom_text.h
//
// Why a program ran out of memory (analysis/oom/oom.h), for people and for programs.
//
// In the text, the rows of the device add up to what it has; the verdict stands in the first line, in
// words, with the numbers that carry it.
//
// Thread safety: one thread at a time: stacks are described as they are asked for.

#ifndef GMT_ANSWERS_OOM_OOM_TEXT_H_
#define GMT_ANSWERS_OOM_OOM_TEXT_H_

#include <string>

#include "analysis/examination/examination.h"
#include "analysis/oom/oom.h"
#include "analysis/stacks/source_line.h"
#include "answers/terminal.h"

namespace gmt::answers {

std::string OomText(const analysis::OomReport& report, const analysis::Examination& examination,
                    analysis::SourceLines& sources, const std::string& file, const Terminal& terminal);

// One object, all keys in the contract of the command line.
std::string OomJson(const analysis::OomReport& report, const analysis::Examination& examination,
                    const std::string& file);

// The first line: "Out of memory (fragmentation): 9.80 GiB are free, ...". `has_history`: the recording has
// events; without any, nothing is known of failures.
std::string OomVerdictLine(const analysis::OomReport& report, bool has_history = true);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_OOM_OOM_TEXT_H_
