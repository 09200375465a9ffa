// analysis/leaks/leak_kind.h
//
// What kind of leak a group of sites is, and what was seen of it, in words.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_KIND_H_
#define GMT_ANALYSIS_LEAKS_LEAK_KIND_H_

#include <string>

#include "analysis/leaks/leaks.h"
#include "analysis/leaks/suspects.h"

namespace gmt::analysis {

LeakKind KindOf(const SiteGroup& group, StackTexts& texts);

// "4 blocks of every step are kept, of 5 made there", "1 block of every 5.7 steps is kept, none freed".
std::string ReasonOf(const SiteGroup& group, LeakKind kind, uint64_t cycles);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_KIND_H_
