// viewer/index/curves_so_far.h
//
// CurvesSoFar: what each lane held, of a recording that is being read, for a first picture of it long
// before there is an index. As coarse as can be: the most that was held in each of some hundred stretches
// of as many events; when there are too many stretches, two become one.
//
//   events told   |....|....|....|....|..      stretches of 2^n events
//   most          |  3 |  7 |  7 |  4 | 5
//
// Thread safety: one thread at a time. Cost: one look at each event and its row, in their order.

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
  static constexpr size_t kMostStretches = 512;

  struct Lane {
    std::string label;           // for a person
    uint64_t bytes = 0;          // held now
    std::vector<uint64_t> most;  // bytes, of each stretch; the last one may be going on
  };

  // Takes what was added to `trace` since the last call. REQUIRES: always the same one, or what was made
  // of it at its end.
  void Take(const analysis::Trace& trace);

  // The `count` that stand first where all are listed.
  std::vector<Lane> Lanes(size_t count) const;

 private:
  struct Held {
    // What was held before the first event is found out on the way, so the curve is kept without it and
    // may be below zero. Sums of sizes that no memory has wrap.
    uint64_t before = 0, since = 0;
    std::vector<int64_t> most;

    int64_t now() const { return static_cast<int64_t>(since); }
  };

  Held& LaneOf(const analysis::Trace& trace, analysis::RowId row);
  void EndStretch();
  static void JoinStretches(std::vector<int64_t>& most);

  std::map<std::pair<int32_t, uint32_t>, Held> lanes_;  // by device and heap; at most kMaxLanes
  Held rest_;                                           // of any further ones, not told
  std::vector<std::string> heaps_;
  // The lane of the last row: most rows are of one.
  std::pair<int32_t, uint32_t> last_place_ = {};
  Held* last_ = nullptr;
  analysis::RowId rows_ = 0;
  size_t events_ = 0;
  size_t stretch_ = 64;  // events
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_CURVES_SO_FAR_H_
