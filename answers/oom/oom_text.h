// answers/oom/oom_text.h
//
// Why a program ran out of memory (analysis/oom/oom.h), as text and as JSON.
//
// In the text, the rows of the device add up to its memory. The first line is the verdict in words,
// with the numbers that support it.
//
// Thread safety: one thread at a time, because stacks are described on demand.

#ifndef GMT_ANSWERS_OOM_OOM_TEXT_H_
#define GMT_ANSWERS_OOM_OOM_TEXT_H_

#include <string>

#include "analysis/examination/examination.h"
#include "analysis/oom/oom.h"
#include "analysis/stacks/source_line.h"
#include "answers/terminal.h"

namespace gmt::answers {

std::string OomText(const analysis::OomReport& report, const analysis::Examination& examination,
                    analysis::SourceLines& sources, const std::string& file,
                    const Terminal& terminal);

// Returns one object with all keys of the command line contract.
std::string OomJson(const analysis::OomReport& report, const analysis::Examination& examination,
                    analysis::SourceLines& sources, const std::string& file);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_OOM_OOM_TEXT_H_
