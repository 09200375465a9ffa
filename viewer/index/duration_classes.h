// viewer/index/duration_classes.h
//
// DurationClasses: the duration classes of many blocks (ViewIndex::DurationClassOf()). The
// positions of every kSpacing-th event suffice for most blocks, because a class is a factor of two
// wide; the others are looked up.
//
// Thread safety: const methods from any thread. Cost: one position per kSpacing events to
// construct.

#ifndef GMT_VIEWER_INDEX_DURATION_CLASSES_H_
#define GMT_VIEWER_INDEX_DURATION_CLASSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/index/block_table.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {

class DurationClasses {
 public:
  static constexpr uint32_t kSpacing = 256;  // events

  // For blocks that mostly live between the events. `index` must outlive it. REQUIRES: as for
  // ViewIndex::PositionOf(), and from <= to <= index.events().
  DurationClasses(const ViewIndex& index, Axis axis, uint32_t from, uint32_t to)
      : index_(index), axis_(axis), from_(from) {
    for (uint64_t event = from; event <= to; event += kSpacing) {
      positions_.push_back(index.PositionOf(axis, static_cast<uint32_t>(event)) / UnitOf(axis));
    }
  }

  uint8_t Of(uint32_t birth, uint32_t death) const {
    const size_t first = (birth - from_) / kSpacing, last = (death - from_) / kSpacing;
    if (birth < from_ || last <= first || last + 1 >= positions_.size()) {
      return index_.DurationClassOf(axis_, birth, death);
    }
    const uint8_t least = ClassOfDuration(positions_[last] - positions_[first + 1]);
    const uint8_t most = ClassOfDuration(positions_[last + 1] - positions_[first]);
    return least == most ? least : index_.DurationClassOf(axis_, birth, death);
  }

 private:
  const ViewIndex& index_;
  const Axis axis_;
  const uint32_t from_;
  std::vector<double> positions_;  // in units of classes
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_DURATION_CLASSES_H_
