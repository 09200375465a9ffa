// IndexBuilder: blocks by row, their places, and their order on the axes.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "viewer/index/index_builder.h"
#include "viewer/index/names.h"

namespace gmt::viewer {
namespace {

using analysis::kDriverHeap;
using analysis::kNever;
using analysis::RowId;
using analysis::Rows;
using analysis::Trace;

static_assert(kNeverFreed == kNever);

// Numbers values in order of first appearance; 0 is unknown, also for more than 65,535 values.
template <typename T>
class Codes {
 public:
  // `name` returns the name of a new value.
  uint16_t Of(T value, auto&& name) {
    if (last_ != 0 && value == last_value_) return last_;
    const auto [it, is_new] = codes_.try_emplace(value, static_cast<uint16_t>(names_.size()));
    if (is_new && names_.size() <= UINT16_MAX) {
      names_.push_back(name());
    } else if (is_new) {
      it->second = 0;
    }
    last_value_ = value;
    return last_ = it->second;
  }
  std::vector<std::string> Finish() && { return std::move(names_); }

 private:
  std::vector<std::string> names_ = {std::string(kUnknownName)};
  absl::flat_hash_map<T, uint16_t> codes_;
  T last_value_ = T();
  uint16_t last_ = 0;
};

std::string LabelOfSegment(const Rows& rows, RowId row, bool expandable) {
  // kSmallBuffer of c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.9).
  constexpr uint64_t kSmallSegment = uint64_t{2} << 20;
  std::string label = rows.Pool(row) ? absl::StrCat("private pool ", *rows.Pool(row))
                      : expandable   ? "expandable"
                      : rows.size[row] == kSmallSegment ? "small pool"
                                                        : "large pool";
  if ((rows.flags[row] & analysis::kRowHasStream) != 0) {
    absl::StrAppend(&label, " · stream ", StreamName(rows, row));
  }
  return label;
}

}  // namespace

std::vector<std::function<void()>> IndexBuilder::ColumnTasks(
    const format::Definitions& definitions) {
  const Rows& rows = trace_.rows;
  BlockTable& blocks = parts_.blocks;
  const auto column = [&rows](PackedColumn& made, auto value_of) {
    PackedColumnBuilder builder;
    for (RowId row = 0, count = rows.count(); row < count; ++row) builder.Add(value_of(row));
    made = builder.Finish();
  };
  return {
      [=, &rows, &blocks] { column(blocks.size, [&](RowId row) { return rows.size[row]; }); },
      [=, &rows, &blocks] { column(blocks.stack, [&](RowId row) { return rows.stack[row]; }); },
      [=, &rows, &blocks] {
        column(blocks.forward_stack, [&](RowId row) { return rows.forward_stack[row]; });
      },
      [=, &rows, &blocks] { column(blocks.birth, [&](RowId row) { return rows.birth[row]; }); },
      [=, &rows, &blocks] { column(blocks.death, [&](RowId row) { return rows.death[row]; }); },
      [=, &rows, &blocks] {
        column(blocks.pending, [&](RowId row) {
          return rows.death[row] != kNever && rows.Completed(row) > rows.death[row] ? 1u : 0u;
        });
      },
      [=, this, &rows, &blocks] {
        Codes<uint64_t> streams;
        column(blocks.stream, [&](RowId row) -> uint16_t {
          if ((rows.flags[row] & analysis::kRowHasStream) == 0) return 0;
          return streams.Of(rows.stream[row], [&] { return StreamName(rows, row); });
        });
        parts_.streams = std::move(streams).Finish();
      },
      [=, this, &rows, &blocks] {
        Codes<uint32_t> threads;
        column(blocks.thread, [&](RowId row) -> uint16_t {
          if ((rows.flags[row] & analysis::kRowHasThread) == 0) return 0;
          return threads.Of(rows.thread[row], [&] { return ThreadName(rows, row); });
        });
        parts_.threads = std::move(threads).Finish();
      },
      [=, this, &rows, &blocks, &definitions] {
        Codes<uint32_t> dtypes;
        column(blocks.dtype, [&](RowId row) -> uint16_t {
          const uint32_t dtype = rows.Dtype(row);
          if (dtype == 0 || definitions.string(dtype).empty()) return 0;
          return dtypes.Of(dtype, [&] { return std::string(definitions.string(dtype)); });
        });
        parts_.dtypes = std::move(dtypes).Finish();
      },
  };
}

// Adds the memory that holds the lane's blocks.
void IndexBuilder::AddSegments(const Lane& lane, AddressSpaces& spaces) const {
  const Rows& rows = trace_.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    const Kind& kind = kinds_[kind_of_row_[row]];
    if (!kind.holds_blocks || kind.device != lane.device) continue;
    if ((rows.flags[row] & analysis::kRowHandle) != 0) continue;
    spaces.Add(rows.address[row], rows.size[row], {rows.birth[row], rows.death[row]},
               LabelOfSegment(rows, row, false), false);
  }
  for (const analysis::Mapping& mapping : trace_.mappings) {
    if (mapping.device != lane.device || mapping.physical >= rows.count()) continue;
    if (!kinds_[kind_of_row_[mapping.physical]].holds_blocks) continue;
    spaces.Add(mapping.address, mapping.size, {mapping.birth, mapping.death},
               LabelOfSegment(rows, mapping.physical, true), true);
  }
}

// Returns for each row of physical memory the address at which it was first mapped; 0: never.
std::vector<uint64_t> IndexBuilder::MappedAt() const {
  std::vector<uint64_t> result;
  for (const analysis::Mapping& mapping : trace_.mappings) {
    if (mapping.physical >= trace_.rows.count()) continue;
    result.resize(std::max<size_t>(result.size(), mapping.physical + 1));
    if (result[mapping.physical] == 0) result[mapping.physical] = mapping.address;
  }
  return result;
}

void IndexBuilder::BuildSpaces() {
  const Rows& rows = trace_.rows;
  const RowId row_count = rows.count();
  const std::vector<uint64_t> mapped_at = MappedAt();
  // 0: no place.
  const auto address_of = [&](RowId row) {
    if ((rows.flags[row] & analysis::kRowHandle) == 0) return rows.address[row];
    return row < mapped_at.size() ? mapped_at[row] : 0;
  };
  std::vector<AddressSpaces> spaces(parts_.lanes.size());
  for (size_t i = 0; i < spaces.size(); ++i) {
    if (!parts_.lanes[i].has_segments) continue;
    AddSegments(parts_.lanes[i], spaces[i]);
    spaces[i].Settle();
  }
  std::vector<bool> grew(spaces.size());
  for (RowId row = 0; row < row_count; ++row) {
    const uint32_t lane = lane_of_kind_[kind_of_row_[row]];
    const uint64_t address = lane == kNoCurve ? 0 : address_of(row);
    if (address == 0 || (parts_.lanes[lane].has_segments && spaces[lane].PlaceOf(address))) {
      continue;
    }
    spaces[lane].Add(address, rows.size[row], {rows.birth[row], rows.death[row]}, "", false);
    grew[lane] = true;
  }
  for (size_t i = 0; i < spaces.size(); ++i) {
    if (grew[i]) spaces[i].Settle();
  }
  PackedColumnBuilder places;
  for (RowId row = 0; row < row_count; ++row) {
    const uint32_t lane = lane_of_kind_[kind_of_row_[row]];
    const uint64_t address = lane == kNoCurve ? 0 : address_of(row);
    const auto place = address == 0 ? std::nullopt : spaces[lane].PlaceOf(address);
    places.Add(place ? *place + 1 : 0);
  }
  parts_.blocks.place = places.Finish();
  for (AddressSpaces& lane : spaces) parts_.spaces.push_back({std::move(lane).Finish()});
}

void IndexBuilder::BuildOrder(Axis axis) {
  const Rows& rows = trace_.rows;
  BlockOrderBuilder builder(static_cast<uint32_t>(parts_.lanes.size()));
  const RowId row_count = rows.count();
  std::vector<uint8_t> classes(row_count);
  const auto visit = [&](auto&& each) {
    const auto row_of_lane = [&](RowId row) {
      const uint32_t lane = lane_of_kind_[kind_of_row_[row]];
      if (lane != kNoCurve) each(row, lane);
    };
    for (RowId row = 0; row < row_count; ++row) {
      if (rows.birth[row] == 0) row_of_lane(row);
    }
    analysis::ForEachBirth(trace_, [&](uint32_t, RowId row) { row_of_lane(row); });
  };
  visit([&](RowId row, uint32_t lane) {
    classes[row] = ClassOf(parts_.axes, axis, rows.birth[row], rows.death[row]);
    builder.Count(lane, classes[row], rows.size[row]);
  });
  builder.EndCounting();
  visit([&](RowId row, uint32_t lane) { builder.Place(lane, classes[row], rows.size[row], row); });
  parts_.blocks.orders[static_cast<size_t>(axis)] = builder.Finish();
}

}  // namespace gmt::viewer
