// viewer/questions/block_details.h
//
// Everything known about one block.
//
// Thread safety: one thread at a time. Cost: proportional to what is held at its birth; the first
// call also walks over all events, to find what each stack has held.

#ifndef GMT_VIEWER_QUESTIONS_BLOCK_DETAILS_H_
#define GMT_VIEWER_QUESTIONS_BLOCK_DETAILS_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

// Returns NOT_FOUND if there is no such row.
absl::StatusOr<BlockDetails> DescribeBlock(Recording& recording, uint32_t row);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_BLOCK_DETAILS_H_
