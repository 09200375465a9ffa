// viewer/html/lane_omissions.h
//
// Summarizes the blocks of a lane that a standalone file leaves out: their bytes by category at
// borders, the minimum, maximum and peak of the total between two borders, and their stacks at key
// events.
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_HTML_LANE_OMISSIONS_H_
#define GMT_VIEWER_HTML_LANE_OMISSIONS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "viewer/html/standalone_file.h"
#include "viewer/slab/slab.h"

namespace gmt::viewer {

class LaneOmissions {
 public:
  LaneOmissions(const StandaloneFile& file, uint32_t lane);

  // Records a birth or a death; called in order. `left_out`: the block is not in the file.
  void Note(analysis::RowId row, bool is_death, analysis::Step step, bool left_out);

  // Writes the summary; called once, after the last Note(). Adds the stacks it mentions to
  // `stacks`.
  void Write(slab::Writer* writer, absl::flat_hash_set<uint32_t>* stacks);

  uint64_t blocks() const { return blocks_left_out_; }
  uint64_t at_peak() const { return at_peak_; }

 private:
  using Kind = std::tuple<uint32_t, uint32_t, uint32_t>;  // stack, forward stack, category
  struct Held {
    int64_t bytes = 0, blocks = 0;
  };
  struct Border {
    std::vector<uint64_t> bytes;  // by category
    uint64_t blocks = 0, min = 0, max = 0;
    analysis::Step peak = 0;  // the first event of the maximum
  };
  void OpenBefore(uint64_t step);
  void NoteStacks(analysis::Step step);

  const analysis::Trace& trace_;
  const analysis::Categories& categories_;
  const analysis::Step peak_;
  std::vector<analysis::Step> key_events_;  // key events: those whose stacks are recorded
  std::vector<analysis::Step> borders_;     // ascending, from 0
  std::vector<Border> opened_;

  uint64_t live_ = 0;  // bytes of all blocks of the lane
  std::vector<uint64_t> by_category_;
  uint64_t held_ = 0;  // blocks left out and live
  absl::flat_hash_map<Kind, Held> by_kind_;
  nlohmann::ordered_json stacks_at_ = nlohmann::ordered_json::array();
  absl::flat_hash_set<uint32_t> stacks_;
  uint64_t blocks_left_out_ = 0, at_peak_ = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_LANE_OMISSIONS_H_
