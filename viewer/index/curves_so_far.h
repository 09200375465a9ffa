// viewer/index/curves_so_far.h
//
// CurvesSoFar: what each lane held in the part read so far, for a first picture of a recording long
// before there is an index. The resolution is low: the maximum held in each of a few hundred
// stretches with the same number of events. When there are too many stretches, each two are merged.
//
//   events read   |....|....|....|....|..      stretches of 2^n events
//   maximum       |  3 |  7 |  7 |  4 | 5
//
// Thread safety: one thread at a time. Cost: one access to each event and its row, in order, and
// two bytes per row.

#ifndef GMT_VIEWER_INDEX_CURVES_SO_FAR_H_
#define GMT_VIEWER_INDEX_CURVES_SO_FAR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::viewer {

class CurvesSoFar {
 public:
  static constexpr size_t kMaxStretches = 512;

  struct Lane {
    std::string label;           // for display
    uint64_t bytes = 0;          // held now
    std::vector<uint64_t> most;  // maximum bytes of each stretch; the last one may be incomplete
  };

  // Processes what was added to `trace` since the last call. REQUIRES: always the same trace, or
  // the one built from it at the end.
  void Take(const analysis::Trace& trace);

  // Returns the first `count` lanes in the order in which the viewer lists them.
  std::vector<Lane> Lanes(size_t count) const;

 private:
  struct Held {
    // Memory held before the first event is discovered while reading, so the curve excludes it and
    // may be negative. Sums of absurd sizes wrap around.
    uint64_t before = 0, since = 0;
    std::vector<int64_t> most;

    int64_t now() const { return static_cast<int64_t>(since); }
  };

  uint16_t NumberOf(std::pair<int32_t, uint32_t> place);
  void FindLanesOfRows(const analysis::Trace& trace);
  void EndStretch();
  static void JoinStretches(std::vector<int64_t>& most);

  // Indices in held_, by device and heap; at most kMaxLanes.
  std::map<std::pair<int32_t, uint32_t>, uint16_t> lanes_;
  std::vector<Held> held_;  // [kMaxLanes]: all further lanes, which are not reported
  std::vector<uint16_t> lane_of_row_;
  std::vector<std::string> heaps_;
  analysis::RowId rows_ = 0;
  size_t events_ = 0;
  size_t stretch_ = 64;  // events
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_CURVES_SO_FAR_H_
