#include "viewer/index/axis_map.h"

#include <algorithm>
#include <cmath>

namespace gmt::viewer {
namespace {

// Returns the last chunk from `from` on that begins at or before a time, or `from` if there is
// none.
uint64_t LastChunkAt(const PackedColumn& times, double time, uint64_t from, uint64_t guess) {
  const uint64_t chunks = times.chunks().size();
  const auto begins = [&](uint64_t chunk) {
    return static_cast<double>(times.BaseOf(chunk)) <= time;
  };
  uint64_t low = from, high = chunks;
  if (guess >= chunks) guess = from;
  if (begins(guess)) {
    low = guess;
    uint64_t ahead = 1;
    for (; low + ahead < chunks && begins(low + ahead); ahead *= 2) low += ahead;
    high = std::min(low + ahead, chunks);
  } else {
    high = guess;
    uint64_t back = 1;
    for (; high > low + back && !begins(high - back); back *= 2) high -= back;
    low = high > low + back ? high - back : low;
  }
  while (high > low + 1) {
    const uint64_t middle = low + (high - low) / 2;
    (begins(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

void AxisMap::SetSteps(const std::vector<analysis::Cycle>& cycles) {
  knots_.clear();
  if (cycles.empty()) return;
  const uint32_t last = events();
  uint32_t at = 0;
  const auto add = [&](uint32_t event, double step) {
    at = std::clamp(event, at, last);
    knots_.push_back({at, step});
  };
  add(0, 0);
  double step = 0;
  for (const analysis::Cycle& cycle : cycles) add(cycle.begin, ++step);
  add(cycles.back().end, ++step);
  if (at < last) add(last, ++step);
}

bool AxisMap::IsSane() const {
  if (times_.size() == 0 || times_.size() > UINT32_MAX) return false;
  for (size_t i = 0; i < knots_.size(); ++i) {
    const Knot& knot = knots_[i];
    if (!std::isfinite(knot.step) || knot.event > events()) return false;
    if (i > 0 && (knots_[i - 1].event > knot.event || !(knots_[i - 1].step < knot.step))) {
      return false;
    }
  }
  return true;
}

double AxisMap::StepOf(uint32_t event) const {
  if (knots_.empty()) return 0;
  const auto after =
      std::upper_bound(knots_.begin(), knots_.end(), event,
                       [](uint32_t value, const Knot& knot) { return value < knot.event; });
  if (after == knots_.begin()) return knots_.front().step;
  const Knot& from = *(after - 1);
  if (after == knots_.end() || after->event == from.event) return from.step;
  return from.step + static_cast<double>(event - from.event) * (after->step - from.step) /
                         static_cast<double>(after->event - from.event);
}

double AxisMap::EndOf(Axis axis) const {
  if (axis == Axis::kTime) return static_cast<double>(end_ns_);
  return PositionOf(axis, events()) + (axis == Axis::kEvent ? 1 : 0);
}

double AxisMap::PositionOf(Axis axis, uint32_t event) const {
  switch (axis) {
    case Axis::kEvent:
      return event;
    case Axis::kTime:
      return static_cast<double>(times_[event]);
    case Axis::kStep:
      return StepOf(event);
  }
  return 0;
}

uint32_t AxisMap::EventAtTime(double time) const {
  const auto chunks = times_.chunks();
  const auto after = std::upper_bound(chunks.begin(), chunks.end(), time,
                                      [](double value, const PackedColumn::Chunk& chunk) {
                                        return value < static_cast<double>(chunk.base);
                                      });
  if (after == chunks.begin()) return 0;
  return EventInChunk(static_cast<uint64_t>(after - chunks.begin() - 1), time);
}

// Returns the last event of the chunk at or before a time. REQUIRES: the first event of the chunk
// is.
uint32_t AxisMap::EventInChunk(uint64_t chunk, double time) const {
  auto low = static_cast<uint32_t>(chunk * PackedColumn::kChunk);
  uint32_t high = std::min(low + static_cast<uint32_t>(PackedColumn::kChunk), events() + 1);
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    (static_cast<double>(times_[middle]) <= time ? low : high) = middle;
  }
  return low;
}

uint32_t AxisMap::EventAtStep(double step) const {
  const auto after =
      std::upper_bound(knots_.begin(), knots_.end(), step,
                       [](double value, const Knot& knot) { return value < knot.step; });
  if (after == knots_.begin()) return 0;
  const Knot& from = *(after - 1);
  if (after == knots_.end()) return from.event;
  const double share = (step - from.step) / (after->step - from.step);
  uint32_t event =
      from.event + static_cast<uint32_t>(share * static_cast<double>(after->event - from.event));
  // Division rounds, so the result is corrected to agree with PositionOf().
  while (event < after->event && StepOf(event + 1) <= step) ++event;
  while (event > from.event && StepOf(event) > step) --event;
  return event;
}

uint32_t AxisMap::EventAt(Axis axis, double position) const {
  if (!(position >= 0)) return 0;
  switch (axis) {
    case Axis::kEvent:
      return position >= static_cast<double>(events()) ? events() : static_cast<uint32_t>(position);
    case Axis::kTime:
      return EventAtTime(position);
    case Axis::kStep:
      return knots_.empty() ? 0 : EventAtStep(position);
  }
  return 0;
}

// Searches from where the event would be if events continued as evenly as before: that touches a
// few neighbouring chunks instead of twenty distant ones.
std::vector<uint32_t> AxisMap::EventsAtTimes(std::span<const double> times) const {
  std::vector<uint32_t> result(times.size());
  uint64_t chunk = 0, stride = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const double time = times[i];
    const uint64_t found = LastChunkAt(times_, time, chunk, chunk + stride);
    if (i > 0) stride = found - chunk;
    chunk = found;
    const bool is_before = static_cast<double>(times_.BaseOf(chunk)) > time;
    result[i] = is_before ? 0 : EventInChunk(chunk, time);
  }
  return result;
}

std::vector<uint32_t> AxisMap::EventsAt(Axis axis, std::span<const double> positions) const {
  if (axis == Axis::kTime) return EventsAtTimes(positions);
  std::vector<uint32_t> result(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const double position = positions[i];
    const uint32_t before = i == 0 ? 0 : result[i - 1];
    // In narrow columns, the event is often the same as in the previous column.
    const bool same = i > 0 && before < events() && PositionOf(axis, before + 1) > position;
    result[i] = same ? before : std::max(before, EventAt(axis, position));
  }
  return result;
}

}  // namespace gmt::viewer
