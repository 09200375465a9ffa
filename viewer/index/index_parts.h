// viewer/index/index_parts.h
//
// The parts of a ViewIndex, in the order in which they are built and stored (index_cache.h).
//
// Thread safety: plain data; ViewIndex::stage determines what may be read.

#ifndef GMT_VIEWER_INDEX_INDEX_PARTS_H_
#define GMT_VIEWER_INDEX_INDEX_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "viewer/index/address_spaces.h"
#include "viewer/index/axis_map.h"
#include "viewer/index/block_table.h"
#include "viewer/index/lane_curve.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

// The memory use of a device as reported by the driver.
struct DriverSample {
  uint32_t event = 0, unused = 0;
  double ns = 0;
  double used = 0, process = 0;  // bytes; NaN: not reported

  double ValueOf(Series series) const { return series == Series::kDriverUsed ? used : process; }
};

struct DeviceSamples {
  int32_t device = 0;
  std::vector<DriverSample> samples;  // by event

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Value(device);
    archive.Items(samples);
  }
};

// The bytes of each category in a lane after the first event of each leaf, by code.
struct LaneCategories {
  std::vector<PackedColumn> at_leaf;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Columns(at_leaf);
  }
};

struct LaneSpaces {
  std::vector<Space> spaces;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Each(spaces);
  }
};

class IndexParts {
 public:
  // Available from kCurves on.
  AxisMap axes;  // its steps from kBlocks on
  uint32_t events = 0;
  std::vector<Lane> lanes;
  std::vector<LaneCurve> curves;         // of each lane, then the reserved memory of devices
  std::vector<uint32_t> reserved_curve;  // by lane; kNoCurve: none
  std::vector<DeviceSamples> samples;
  EventColumns changes;

  // Available from kBlocks on.
  BlockTable blocks;
  std::vector<std::string> streams, threads, dtypes;  // names by code
  std::vector<LaneSpaces> spaces;                     // by lane

  // Available from kReady on.
  PackedColumn row_category;               // by row
  PackedColumn row_role;                   // by row: analysis::AliveReason
  PackedColumn event_category;             // by event
  std::vector<LaneCategories> categories;  // by lane
  uint32_t category_count = 0;

  // Owns the memory of the columns if they do not own it themselves.
  std::shared_ptr<const void> storage;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Item(axes);
    archive.Value(events);
    archive.Each(lanes);
    archive.Each(curves);
    archive.Items(reserved_curve);
    archive.Each(samples);
    archive.Item(changes);
    archive.Item(blocks);
    archive.Each(streams);
    archive.Each(threads);
    archive.Each(dtypes);
    archive.Each(spaces);
    archive.Column(row_category);
    archive.Column(row_role);
    archive.Column(event_category);
    archive.Each(categories);
    archive.Value(category_count);
  }
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_PARTS_H_
