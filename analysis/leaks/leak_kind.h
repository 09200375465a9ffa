// analysis/leaks/leak_kind.h
//
// The kind of leak that a group of sites is, and a description of what was observed.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_KIND_H_
#define GMT_ANALYSIS_LEAKS_LEAK_KIND_H_

#include <string>

#include "analysis/leaks/leak_report.h"
#include "analysis/leaks/suspects.h"

namespace gmt::analysis {

LeakKind KindOf(const SiteGroup& group, StackTexts& texts);

// "4 blocks kept per step, of 5 allocated there per step", "12 blocks kept every 10 steps", "1
// block kept every 5.7 steps, none ever freed". `cycles`: number of watched cycles.
std::string ReasonOf(const SiteGroup& group, LeakKind kind, uint64_t cycles);

// The library option that fixes it, "eval_accumulation_steps"; "" if none is known.
std::string OptionFor(const SiteGroup& group, LeakKind kind, StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_KIND_H_
