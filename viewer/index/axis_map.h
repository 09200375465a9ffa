// viewer/index/axis_map.h
//
// AxisMap: where events lie on the three axes, and back.
//
//   event   0      1      2      3      4      5        events 2..4 are of step 1
//   time    0 ns   5 ns   5 ns   9 ns   9 ns   14 ns     the largest so far: never backwards
//   step    0      1      1.33   1.66   2      3
//
// Steps: between the events at which steps begin, and from the beginning of the last to its end,
// positions grow evenly with events. What comes before the first step fills 0..1, what comes after the
// last one n+1..n+2.
//
// Invariants
//   A1  PositionOf(e) <= PositionOf(e + 1).
//   A2  EventAt(p) is the last event e with PositionOf(e) <= p, and 0 where there is none.
//
// Thread safety: const methods from any thread.

#ifndef GMT_VIEWER_INDEX_AXIS_MAP_H_
#define GMT_VIEWER_INDEX_AXIS_MAP_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analysis/loop/phases.h"
#include "viewer/index/packed_column.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

class AxisMap {
 public:
  struct Knot {
    uint32_t event = 0;
    double step = 0;
  };

  // `times` by event, ascending, of event 0 too.
  void SetTimes(PackedColumn times) { times_ = std::move(times); }
  void SetSteps(const std::vector<analysis::Cycle>& cycles);

  bool has_steps() const { return !knots_.empty(); }
  uint32_t events() const {
    return times_.size() == 0 ? 0 : static_cast<uint32_t>(times_.size() - 1);
  }

  double PositionOf(Axis axis, uint32_t event) const;
  uint32_t EventAt(Axis axis, double position) const;
  uint64_t TimeOf(uint32_t event) const { return times_[event]; }

  // Knots ascend, and there are times: what was read from a file may be used.
  bool IsSane() const;

  // Of positions that ascend about evenly, faster than one by one.
  std::vector<uint32_t> EventsAt(Axis axis, std::span<const double> positions) const;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Column(times_);
    archive.Items(knots_);
  }

 private:
  double StepOf(uint32_t event) const;
  uint32_t EventAtTime(double time) const;
  uint32_t EventInChunk(uint64_t chunk, double time) const;
  std::vector<uint32_t> EventsAtTimes(std::span<const double> times) const;
  uint32_t EventAtStep(double step) const;

  PackedColumn times_;
  std::vector<Knot> knots_;  // both ascending; empty: no steps
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_AXIS_MAP_H_
