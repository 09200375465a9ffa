// analysis/leaks/benign.h
//
// Labels growth that is not a leak.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_BENIGN_H_
#define GMT_ANALYSIS_LEAKS_BENIGN_H_

#include <vector>

#include "analysis/leaks/leak_evidence.h"

namespace gmt::analysis {

// Most bytes first.
std::vector<BenignGrowth> NameBenign(const LeakEvidence& evidence, StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_BENIGN_H_
