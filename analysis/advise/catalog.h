// analysis/advise/catalog.h
//
// What is known of each change before a recording is read: the line of code or the setting, what it
// costs, and why it helps.
//
// Thread safety: pure function.

#ifndef GMT_ANALYSIS_ADVISE_CATALOG_H_
#define GMT_ANALYSIS_ADVISE_CATALOG_H_

#include <string_view>

#include "analysis/advise/advise.h"

namespace gmt::analysis {

// REQUIRES: the catalog has a change of that name.
Advice NewAdvice(std::string_view name);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ADVISE_CATALOG_H_
