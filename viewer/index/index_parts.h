// viewer/index/index_parts.h
//
// What a ViewIndex consists of, in the order in which it is built and kept (index_cache.h).
//
// Thread safety: plain data; ViewIndex::stage says what may be read.

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
#include "viewer/index/view_index.h"

namespace gmt::viewer {

// What the driver said of a device, and when.
struct DriverSample {
  uint32_t event = 0, unused = 0;
  double ns = 0;
  double used = 0, process = 0;  // bytes; NaN: it did not say
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

// Bytes of each category in a lane, after the first event of each leaf, by code.
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
  // Of kCurves.
  AxisMap axes;  // steps: of kBlocks
  uint32_t events = 0;
  int64_t end_ns = 0;
  std::vector<Lane> lanes;
  std::vector<LaneCurve> curves;         // of each lane, then what is reserved on devices
  std::vector<uint32_t> reserved_curve;  // by lane; kNoCurve: has none
  std::vector<DeviceSamples> samples;
  EventColumns changes;

  // Of kBlocks.
  BlockTable blocks;
  std::vector<std::string> streams, threads;  // names by code
  std::vector<LaneSpaces> spaces;             // by lane

  // Of kReady.
  PackedColumn row_category;               // by row
  PackedColumn event_category;             // by event
  std::vector<LaneCategories> categories;  // by lane
  uint32_t category_count = 0;

  // What the columns lie in, where it is not their own.
  std::shared_ptr<const void> storage;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Item(axes);
    archive.Value(events);
    archive.Value(end_ns);
    archive.Each(lanes);
    archive.Each(curves);
    archive.Items(reserved_curve);
    archive.Each(samples);
    archive.Item(changes);
    archive.Item(blocks);
    archive.Each(streams);
    archive.Each(threads);
    archive.Each(spaces);
    archive.Column(row_category);
    archive.Column(event_category);
    archive.Each(categories);
    archive.Value(category_count);
  }
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_PARTS_H_
