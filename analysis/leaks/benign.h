// analysis/leaks/benign.h
//
// The names of growth that is no leak.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_BENIGN_H_
#define GMT_ANALYSIS_LEAKS_BENIGN_H_

#include <vector>

#include "analysis/examination.h"
#include "analysis/leaks/leak_walk.h"
#include "analysis/leaks/leaks.h"

namespace gmt::analysis {

// Most bytes first.
std::vector<BenignGrowth> NameBenign(const std::vector<SiteGrowth>& grown, const LeakWalk& walk,
                                     StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_BENIGN_H_
