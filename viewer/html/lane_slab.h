// viewer/html/lane_slab.h
//
// A lane in a standalone file: its blocks as columns, with shared attributes stored once, and the
// totals of what is left out. viewer/page/src/data/embedded/lane_data.ts reads it.
//
//   birth, life    events; blocks are in order of birth
//   kind           a block's size, stack, category, stream etc. There are few distinct kinds, and
//                  most of the file consists of references to them. 0 refers to the next kind not
//                  used before, n + 1 to kind n; if all kinds differ, the references take next to
//                  no space
//   space, offset  where the block lies: an address range, and the offset from its beginning
//
// All blocks smaller than a threshold are left out. Their bytes are given by category at borders:
// evenly spaced events, and key events such as the peak.
//
// Thread safety: pure functions. Cost: one pass over the steps for each lane.

#ifndef GMT_VIEWER_HTML_LANE_SLAB_H_
#define GMT_VIEWER_HTML_LANE_SLAB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "viewer/html/standalone_file.h"

namespace gmt::viewer {

struct LaneSlab {
  std::string bytes;
  uint64_t omitted_blocks = 0;
  uint64_t omitted_at_peak = 0;  // bytes
};

// Encodes a lane without the blocks of fewer than `smaller_than` bytes. Adds the stacks that the
// slab references to `stacks`.
LaneSlab MakeLaneSlab(const StandaloneFile& file, uint32_t lane, uint64_t smaller_than,
                      absl::flat_hash_set<uint32_t>* stacks);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_LANE_SLAB_H_
