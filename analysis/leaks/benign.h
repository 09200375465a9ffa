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

// Whether the site's tensor grows with the sequences that are being generated, and ends with them:
// the keys and values of a cache, or tokens (Hugging Face transformers 4.36 to 5).
bool IsOfGeneration(const SiteGrowth& site, StackTexts& texts);

// Most bytes first.
std::vector<BenignGrowth> NameBenign(const LeakEvidence& evidence, StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_BENIGN_H_
