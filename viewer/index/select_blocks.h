// viewer/index/select_blocks.h
//
// BlockTile of a window: the blocks that can be seen in it, stacked or by address.
//
// Thread safety: pure function. REQUIRES: a query that makes sense, of a lane that there is.

#ifndef GMT_VIEWER_INDEX_SELECT_BLOCKS_H_
#define GMT_VIEWER_INDEX_SELECT_BLOCKS_H_

#include "viewer/index/index_parts.h"
#include "viewer/index/tiles.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {

BlockTile SelectBlocksOf(const IndexParts& parts, const BlockQuery& query,
                         const SelectLimits& limits, bool with_categories);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_SELECT_BLOCKS_H_
