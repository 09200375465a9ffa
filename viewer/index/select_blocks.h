// viewer/index/select_blocks.h
//
// Selects the BlockTile of a window: the blocks that are visible in it, stacked or by address.
//
// Thread safety: pure function. REQUIRES: a valid query about an existing lane.

#ifndef GMT_VIEWER_INDEX_SELECT_BLOCKS_H_
#define GMT_VIEWER_INDEX_SELECT_BLOCKS_H_

#include "viewer/index/index_parts.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

BlockTile SelectBlocksOf(const IndexParts& parts, const BlockQuery& query,
                         const SelectLimits& limits, bool with_categories);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_SELECT_BLOCKS_H_
