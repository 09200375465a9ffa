// viewer/questions/find.h
//
// The blocks of a scope, page by page, by birth. Where a page was asked for, the next one of the same
// scope looks only at what was born behind it.
//
// Thread safety: one thread at a time. Cost: of a first page the scope, as it is counted.

#ifndef GMT_VIEWER_QUESTIONS_FIND_H_
#define GMT_VIEWER_QUESTIONS_FIND_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

inline constexpr uint32_t kMaxFound = 10'000;

// From the first block behind the row `after` in the order of births; kNoRow: from the first.
absl::StatusOr<Found> FindBlocks(Recording& recording, const Scope& scope, uint32_t after,
                                 uint32_t limit);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FIND_H_
