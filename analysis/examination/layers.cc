#include "analysis/examination/layers.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "analysis/examination/replay.h"

namespace gmt::analysis {
namespace {

// Regions of NVTX lie in memory of any heap.
constexpr uint32_t kRegionLayer = UINT32_MAX;

// Where a row begins or ends to cover addresses. Physical memory has edges at each of its mappings.
struct Edge {
  int32_t device;
  uint64_t address;
  bool begins;
  uint32_t layer;  // inner heaps have higher indices (driver 0, host 1, then frameworks); or
                   // kRegionLayer
  RowId row;

  bool operator<(const Edge& other) const {
    return std::tie(device, address, begins, layer, row) <
           std::tie(other.device, other.address, other.begins, other.layer, other.row);
  }
};

class EdgeList {
 public:
  void Add(int32_t device, uint64_t address, uint64_t size, uint32_t layer, RowId row) {
    if (size == 0 || address + size < address) return;
    edges_.push_back({device, address, true, layer, row});
    edges_.push_back({device, address + size, false, layer, row});
  }
  std::vector<Edge> Sorted() && {
    std::sort(edges_.begin(), edges_.end());
    return std::move(edges_);
  }

 private:
  std::vector<Edge> edges_;
};

std::vector<Edge> Edges(const Trace& trace, const std::vector<RowId>& held, Step step) {
  EdgeList edges;
  const Rows& rows = trace.rows;
  for (RowId row : held) {
    if ((rows.flags[row] & kRowHandle) != 0) continue;
    const uint32_t layer = rows.IsRegion(row) ? kRegionLayer : rows.heap[row];
    edges.Add(rows.device[row], rows.address[row], rows.size[row], layer, row);
  }
  for (const Mapping& m : trace.mappings) {
    if (m.physical == kNoRow || !m.HeldAfter(step) || !rows.HeldAfter(m.physical, step)) continue;
    edges.Add(rows.device[m.physical], m.address, m.size, kDriverHeap, m.physical);
  }
  return std::move(edges).Sorted();
}

// Returns the bytes of each row that a row of an inner layer covers.
absl::flat_hash_map<RowId, uint64_t> CoveredBytes(const std::vector<Edge>& edges) {
  absl::flat_hash_map<RowId, uint64_t> covered;
  std::set<std::pair<uint32_t, RowId>> open;  // by layer; the last is the innermost
  uint64_t reached = 0;
  for (const Edge& edge : edges) {
    if (open.size() > 1 && edge.address > reached) {
      const auto [innermost, last] = *open.rbegin();
      for (const auto& [layer, row] : open) {
        // The inner one of nested regions is the younger.
        const bool is_under = layer < innermost || (layer == kRegionLayer && row != last);
        if (is_under) covered[row] += edge.address - reached;
      }
    }
    reached = edge.address;
    if (edge.begins) {
      open.emplace(edge.layer, edge.row);
    } else {
      open.erase({edge.layer, edge.row});
    }
  }
  return covered;
}

}  // namespace

std::vector<OwnBytes> OwnBytesAfter(const Trace& trace, Step step) {
  const std::vector<RowId> held = HeldAfter(trace, step);
  const auto covered = CoveredBytes(Edges(trace, held, step));
  std::vector<OwnBytes> own;
  own.reserve(held.size());
  for (RowId row : held) {
    const auto it = covered.find(row);
    const uint64_t size = trace.rows.size[row];
    const uint64_t hidden = it == covered.end() ? 0 : std::min(size, it->second);
    own.push_back({row, size - hidden});
  }
  return own;
}

}  // namespace gmt::analysis
