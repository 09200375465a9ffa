// analysis/diff/differences.h
//
// How two recordings differ apart from memory: command line, settings, libraries, devices, the
// loop.
//
// Thread safety: pure function.

#ifndef GMT_ANALYSIS_DIFF_DIFFERENCES_H_
#define GMT_ANALYSIS_DIFF_DIFFERENCES_H_

#include <string>
#include <vector>

#include "analysis/examination/examination.h"

namespace gmt::analysis {

// "torch 2.6.0 -> 2.7.0", "PYTORCH_CUDA_ALLOC_CONF not set -> expandable_segments:True", "command
// --batch 16 -> --batch 32". A fact that only one of them contains at all (the other may be an
// imported snapshot) is not a difference.
std::vector<std::string> DifferencesOf(const Examination& base, const Examination& changed);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_DIFFERENCES_H_
