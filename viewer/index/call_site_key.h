// viewer/index/call_site_key.h
//
// The number that colours hang on: of the place in the program's own code that a stack allocates
// from, the same in every file and run. Lines are no part of it, so that an edit above a call keeps
// its colour.
//
// Thread safety: that of StackTexts.

#ifndef GMT_VIEWER_INDEX_CALL_SITE_KEY_H_
#define GMT_VIEWER_INDEX_CALL_SITE_KEY_H_

#include <cstdint>

#include "analysis/stack_texts.h"

namespace gmt::viewer {

// Of the function and file of its own frame, where it has none of its leading one; 0 without frames.
uint32_t CallSiteKey(analysis::StackTexts& stacks, uint32_t stack);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_CALL_SITE_KEY_H_
