// viewer/questions/find.h
//
// The blocks of a scope, page by page, by birth. After one page, the next page of the same scope
// visits only what was born later.
//
// Thread safety: one thread at a time. Cost: the first page visits the whole scope, to count it.

#ifndef GMT_VIEWER_QUESTIONS_FIND_H_
#define GMT_VIEWER_QUESTIONS_FIND_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

inline constexpr uint32_t kMaxFound = 10'000;

// Returns blocks from the first one after row `after` in order of birth; kNoRow: from the first.
absl::StatusOr<Found> FindBlocks(Recording& recording, const Scope& scope, uint32_t after,
                                 uint32_t limit);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FIND_H_
