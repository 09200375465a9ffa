// viewer/index/axis_map.h
//
// AxisMap: maps events to positions on the three axes, and back.
//
//   event   0      1      2      3      4      5        events 2..4 are of step 1
//   time    0 ns   5 ns   5 ns   9 ns   9 ns   14 ns     the maximum so far: never goes back
//   step    0      1      1.33   1.66   2      3
//
// Steps: between the first events of steps, and from the first event of the last step to its end,
// the position grows linearly with the event number. What precedes the first step fills 0..1, and
// what follows the last one n+1..n+2.
//
// Invariants
//   A1  PositionOf(e) <= PositionOf(e + 1).
//   A2  EventAt(p) is the last event e with PositionOf(e) <= p, or 0 if there is none.
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

  // `times`: by event, ascending, including event 0. `end_ns`: the end of the recording.
  void SetTimes(PackedColumn times, int64_t end_ns) {
    times_ = std::move(times);
    end_ns_ = end_ns;
  }
  void SetSteps(const std::vector<analysis::Cycle>& cycles);

  bool has_steps() const { return !knots_.empty(); }
  uint32_t events() const {
    return times_.size() == 0 ? 0 : static_cast<uint32_t>(times_.size() - 1);
  }

  int64_t end_ns() const { return end_ns_; }

  // Where the axis ends: the last event has its place on that of events.
  double EndOf(Axis axis) const;
  double PositionOf(Axis axis, uint32_t event) const;
  uint32_t EventAt(Axis axis, double position) const;
  uint64_t TimeOf(uint32_t event) const { return times_[event]; }

  // Returns whether the knots ascend and there are times, so that data read from a file is safe to
  // use.
  bool IsSane() const;

  // Maps positions that ascend roughly evenly; faster than mapping them one by one.
  std::vector<uint32_t> EventsAt(Axis axis, std::span<const double> positions) const;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Value(end_ns_);
    archive.Column(times_);
    archive.Items(knots_);
  }

 private:
  double StepOf(uint32_t event) const;
  uint32_t EventAtTime(double time) const;
  uint32_t EventInChunk(uint64_t chunk, double time) const;
  std::vector<uint32_t> EventsAtTimes(std::span<const double> times) const;
  uint32_t EventAtStep(double step) const;

  int64_t end_ns_ = 0;
  PackedColumn times_;
  std::vector<Knot> knots_;  // both ascending; empty: no steps
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_AXIS_MAP_H_
