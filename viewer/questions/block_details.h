// viewer/questions/block_details.h
//
// All that is known of one block.
//
// Thread safety: one thread at a time. Cost: what is held when it is born; at first a walk over all
// events, for what its stack has held.

#ifndef GMT_VIEWER_QUESTIONS_BLOCK_DETAILS_H_
#define GMT_VIEWER_QUESTIONS_BLOCK_DETAILS_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

// NOT_FOUND where there is no such row.
absl::StatusOr<BlockDetails> DescribeBlock(Recording& recording, uint32_t row);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_BLOCK_DETAILS_H_
