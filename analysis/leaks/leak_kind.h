// analysis/leaks/leak_kind.h
//
// What kind of leak a group of sites is, and what was seen of it, in words.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_KIND_H_
#define GMT_ANALYSIS_LEAKS_LEAK_KIND_H_

#include <string>

#include "analysis/leaks/leak_walk.h"
#include "analysis/leaks/leaks.h"
#include "analysis/leaks/suspects.h"

namespace gmt::analysis {

LeakKind KindOf(const SiteGroup& group, StackTexts& texts);

// "1 block survives of every step, none was freed".
std::string ReasonOf(const SiteGroup& group, LeakKind kind, uint64_t cycles);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_KIND_H_
