// viewer/served/tile_slabs.h
//
// The answers that are sent as columns: curves, blocks and flame graphs, with the names of
// viewer/page/src/data/protocol.ts.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_SERVED_TILE_SLABS_H_
#define GMT_VIEWER_SERVED_TILE_SLABS_H_

#include <string>

#include "viewer/index/tiles.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

std::string CurveSlab(const CurveTile& tile);
std::string PassingSlab(const PassingCurve& curve);
std::string PredictedSlab(const PredictedCurve& curve);
std::string BlockSlab(const BlockTile& tile);
std::string FlameSlab(const FlameTree& tree);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVED_TILE_SLABS_H_
