// answers/frag/frag_text.h
//
// Fragmentation (analysis/fragmentation/fragmentation.h) as text and as JSON.
//
// In the text, the rows of the split add up to the free memory. Each row says how it can be
// reclaimed.
//
// Thread safety: one thread at a time, because stacks are described on demand.

#ifndef GMT_ANSWERS_FRAG_FRAG_TEXT_H_
#define GMT_ANSWERS_FRAG_FRAG_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/stacks/source_line.h"
#include "answers/frag/replays.h"
#include "answers/terminal.h"

namespace gmt::answers {

// `top`: number of code lines that pin memory. Of several devices, the one with the most free
// memory is shown in full.
std::string FragText(const std::vector<DeviceFragmentation>& devices,
                     const analysis::Examination& examination, analysis::SourceLines& sources,
                     const std::string& file, size_t top, const Terminal& terminal);

// Returns one object with all keys of the command line contract.
std::string FragJson(const std::vector<DeviceFragmentation>& devices,
                     const analysis::Examination& examination, analysis::SourceLines& sources,
                     const std::string& file, size_t top);

// The device with the most free memory; the end if there is none.
std::vector<DeviceFragmentation>::const_iterator MostFree(
    const std::vector<DeviceFragmentation>& devices);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_FRAG_TEXT_H_
