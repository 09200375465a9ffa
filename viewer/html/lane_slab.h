// viewer/html/lane_slab.h
//
// A lane in a mailed file: its blocks as columns, what they have in common said once, and the totals of
// what is left out. viewer/page/src/data/embedded/lane_data.ts reads it.
//
//   birth, life    events; blocks are in the order of their births
//   kind           size, stack, category, stream ... of a block: few differ, and most of what a file
//                  needs are references to them. 0 is the next one that did not come before, else its
//                  number and 1: where all differ, the references cost nothing
//   space, offset  where it lay: a range of addresses, and how far from its beginning
//
// What is left out are all blocks smaller than a threshold. Its bytes are told by category at borders:
// events of even distance, and those that people ask for.
//
// Thread safety: pure functions. Cost: a walk over the steps for each lane.

#ifndef GMT_VIEWER_HTML_LANE_SLAB_H_
#define GMT_VIEWER_HTML_LANE_SLAB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "viewer/html/mailed_file.h"

namespace gmt::viewer {

struct LaneSlab {
  std::string bytes;
  uint64_t omitted_blocks = 0;
  uint64_t omitted_at_peak = 0;  // bytes
};

// `smaller_than`: bytes; blocks smaller than that are left out. Stacks that the slab names are added
// to `stacks`.
LaneSlab MakeLaneSlab(const MailedFile& file, uint32_t lane, uint64_t smaller_than,
                      absl::flat_hash_set<uint32_t>* stacks);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_LANE_SLAB_H_
