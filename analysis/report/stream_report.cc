#include "analysis/report/stream_report.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/recorded_time.h"

namespace gmt::analysis {
namespace {

struct Piece {
  RowId row = kNoRow;
  int64_t from_ns = 0, to_ns = 0;
  bool known = true, to_the_end = false;
};

class StreamReportMaker {
 public:
  StreamReportMaker(const Trace& trace, const format::Definitions& definitions,
                    const std::map<int32_t, Step>& instants, const Window& window,
                    const symbols::FrameRules& rules)
      : trace_(trace),
        definitions_(definitions),
        instants_(instants),
        window_(window),
        rules_(rules) {}

  StreamReport Make() {
    FindPieces();
    for (const Piece& piece : pieces_) AddPiece(piece);
    for (HeldHeap& heap : report_.heaps) AddPeaks(heap);
    FinishRows();
    for (const StreamInfo& info : trace_.streams) {
      report_.streams.push_back({info, std::string(definitions_.string(info.name))});
    }
    for (const auto& [device, step] : instants_) {
      if (device == kHostDevice) continue;
      for (StreamMemory& memory : MemoryByStream(trace_, device, step)) {
        report_.memory.push_back(std::move(memory));
      }
    }
    AddHostCosts();
    report_.cross_check = trace_.cross_check;
    report_.duration_ns = trace_.end_t_ns;
    return std::move(report_);
  }

 private:
  using RowKey = std::tuple<int32_t, uint32_t, uint32_t, uint64_t, bool>;

  void FindPieces() {
    absl::flat_hash_map<RowId, int64_t> completed;
    for (const Completion& completion : trace_.completions) {
      completed[completion.row] = completion.t_ns;
    }
    const Rows& rows = trace_.rows;
    const RowId count = rows.count();
    for (RowId row = 0; row < count; ++row) {
      if ((rows.flags[row] & (kRowAwaited | kRowFreedInOrder)) == 0) continue;
      if (rows.death[row] == kNever || !instants_.contains(rows.device[row])) continue;
      Piece piece{row, trace_.TimeOf(rows.death[row]), trace_.end_t_ns};
      if ((rows.flags[row] & kRowFreedInOrder) != 0) {
        const std::optional<int64_t> done = rows.DoneAt(row);
        piece.known = done.has_value();
        if (done) piece.to_ns = *done;
      } else if (const auto end = completed.find(row); end != completed.end()) {
        piece.to_ns = end->second;
      } else {
        piece.to_the_end = true;
      }
      piece.to_ns = std::max(piece.to_ns, piece.from_ns);
      pieces_.push_back(piece);
    }
  }

  HeldHeap& HeapOf(RowId row) {
    const int32_t device = trace_.rows.device[row];
    const std::string& name = trace_.heaps[trace_.rows.heap[row]];
    for (HeldHeap& heap : report_.heaps) {
      if (heap.device == device && heap.heap == name) return heap;
    }
    HeldHeap& heap = report_.heaps.emplace_back();
    heap.device = device;
    heap.heap = name;
    return heap;
  }

  void AddPiece(const Piece& piece) {
    if (piece.from_ns < window_.from_ns || piece.from_ns > window_.to_ns) return;
    const Rows& rows = trace_.rows;
    const uint64_t size = rows.size[piece.row];
    HeldHeap& heap = HeapOf(piece.row);
    if (!piece.known) {
      ++heap.unknown_frees;
      heap.unknown_bytes += size;
      return;
    }
    const auto held_ns = Between(piece.from_ns, piece.to_ns);
    heap.held.Add(size, held_ns, piece.to_the_end);
    const bool has_stream = (rows.flags[piece.row] & kRowHasStream) != 0;
    rows_[{rows.device[piece.row], rows.heap[piece.row], rows.stack[piece.row],
           has_stream ? rows.stream[piece.row] : 0, has_stream}]
        .Add(size, held_ns, piece.to_the_end);
  }

  // Walks the births and deaths of a heap, together with the ends of pieces held after their free.
  void AddPeaks(HeldHeap& heap) const {
    const Rows& rows = trace_.rows;
    const auto is_here = [&](RowId row) {
      return rows.device[row] == heap.device && trace_.heaps[rows.heap[row]] == heap.heap;
    };
    absl::flat_hash_map<RowId, int64_t> held_until;
    for (const Piece& piece : pieces_) {
      if (is_here(piece.row) && piece.known) held_until[piece.row] = piece.to_ns;
    }
    using End = std::pair<int64_t, uint64_t>;  // time, bytes
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    uint64_t live = 0, held = 0;
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.birth[row] == 0 && is_here(row)) live += rows.size[row];
    }
    for (const StepRecord step : trace_.steps) {
      for (; !ends.empty() && ends.top().first <= step.t_ns; ends.pop()) held -= ends.top().second;
      if (step.row == kNoRow || !is_here(step.row)) continue;
      const uint64_t size = rows.size[step.row];
      live += step.is_death ? 0 - size : size;
      const auto until = step.is_death ? held_until.find(step.row) : held_until.end();
      if (until != held_until.end() && until->second > step.t_ns) {
        ends.emplace(until->second, size);
        held += size;
      }
      if (step.t_ns < window_.from_ns || step.t_ns > window_.to_ns) continue;
      heap.peak_live_bytes = std::max(heap.peak_live_bytes, live);
      heap.peak_occupied_bytes = std::max(heap.peak_occupied_bytes, live + held);
      if (held > heap.peak_bytes) heap.peak_bytes = held, heap.peak_t_ns = step.t_ns;
    }
  }

  void FinishRows() {
    for (const auto& [key, held] : rows_) {
      HeldRow row;
      uint32_t heap = 0;
      std::tie(row.device, heap, row.stack, row.stream, row.has_stream) = key;
      row.heap = trace_.heaps[heap];
      row.held = held;
      row.frames = DescribeStack(definitions_, row.stack, rules_);
      report_.rows.push_back(std::move(row));
    }
    std::stable_sort(
        report_.rows.begin(), report_.rows.end(),
        [](const HeldRow& a, const HeldRow& b) { return a.held.byte_ns > b.held.byte_ns; });
  }

  void AddHostCosts() {
    for (const HostCost& cost : trace_.host_costs) {
      report_.host_costs.push_back({cost, std::string(definitions_.string(cost.api)), {}});
    }
    std::stable_sort(report_.host_costs.begin(), report_.host_costs.end(),
                     [](const HostCostRow& a, const HostCostRow& b) {
                       return a.cost.total_ns > b.cost.total_ns;
                     });
    const size_t described = std::min(report_.host_costs.size(), HostCostRow::kMaxDescribed);
    for (size_t i = 0; i < described; ++i) {
      HostCostRow& row = report_.host_costs[i];
      row.frames = DescribeStack(definitions_, row.cost.stack, rules_);
    }
  }

  const Trace& trace_;
  const format::Definitions& definitions_;
  const std::map<int32_t, Step>& instants_;
  const Window window_;
  const symbols::FrameRules& rules_;
  std::vector<Piece> pieces_;
  std::map<RowKey, Held> rows_;
  StreamReport report_;
};

}  // namespace

void Held::Add(uint64_t size, uint64_t held_ns, bool to_the_end) {
  ++frees;
  bytes += size;
  byte_ns += static_cast<double>(size) * static_cast<double>(held_ns);
  longest_ns = std::max(longest_ns, held_ns);
  if (to_the_end) ++still;
}

StreamReport MakeStreamReport(const Trace& trace, const format::Definitions& definitions,
                              const std::map<int32_t, Step>& instants, const Window& window,
                              const symbols::FrameRules& rules) {
  return StreamReportMaker(trace, definitions, instants, window, rules).Make();
}

const StreamInfo* StreamAt(const Trace& trace, uint64_t handle, int64_t t_ns) {
  const StreamInfo* last = nullptr;
  for (const StreamInfo& stream : trace.streams) {
    if (stream.handle != handle) continue;
    last = &stream;
    if (stream.ExistedAt(t_ns)) return last;
  }
  return last;
}

}  // namespace gmt::analysis
