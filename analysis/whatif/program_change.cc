#include "analysis/whatif/program_change.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analysis/examination/replay.h"

namespace gmt::analysis {
namespace {

// A request of the changed program: requests of one step are ordered by their kind, so that memory
// is free before it is requested.
struct DatedRequest {
  Step step = 0;
  bool is_allocation = false;
  AllocatorRequest request;
};

class HistoryChanger {
 public:
  HistoryChanger(const AllocatorHistory& history, const ProgramChange& change)
      : history_(history), change_(change), rows_(change.trace().rows) {
    next_ = rows_.count() + static_cast<uint32_t>(change.trace().failed.size());
  }

  AllocatorHistory Change() && {
    for (const AllocatorRequest& request : history_.requests) {
      const bool is_of_row = request.kind == AllocatorRequest::kAllocate ||
                             request.kind == AllocatorRequest::kFree ||
                             request.kind == AllocatorRequest::kFreeWhenAwaited ||
                             request.kind == AllocatorRequest::kComplete;
      const auto changed =
          is_of_row ? change_.changed().find(request.allocation) : change_.changed().end();
      if (changed == change_.changed().end()) {
        requests_.push_back({request.step, false, request});
      } else if (request.kind == AllocatorRequest::kAllocate) {
        for (const Holding& holding : changed->second) AddHolding(holding, request);
      } else if (rows_.birth[request.allocation] == 0 && !changed->second.empty()) {
        // What existed before is freed earlier at most.
        AllocatorRequest free = request;
        free.step = std::min(free.step, changed->second.back().end);
        requests_.push_back({free.step, false, free});
      }
    }
    for (const Holding& holding : change_.added()) AddHolding(holding, {});
    std::stable_sort(
        requests_.begin(), requests_.end(), [](const DatedRequest& a, const DatedRequest& b) {
          return std::tuple(a.step, a.is_allocation) < std::tuple(b.step, b.is_allocation);
        });
    AllocatorHistory changed = history_;
    changed.segment_events.clear();
    changed.requests.clear();
    for (const DatedRequest& dated : requests_) changed.requests.push_back(dated.request);
    return changed;
  }

 private:
  void AddHolding(const Holding& holding, AllocatorRequest request) {
    request.kind = AllocatorRequest::kAllocate;
    // Blocks are larger than requested; one of another size is requested with its size.
    const bool is_larger = request.allocation < rows_.count() && request.bytes > 0 &&
                           holding.bytes > rows_.size[request.allocation];
    request.bytes =
        request.bytes == 0 || is_larger ? holding.bytes : std::min(request.bytes, holding.bytes);
    request.allocation = next_++;
    request.step = holding.begin;
    requests_.push_back({holding.begin, true, request});
    if (holding.end == kNever) return;
    request.kind = AllocatorRequest::kFree;
    request.step = holding.end;
    requests_.push_back({holding.end, false, request});
  }

  const AllocatorHistory& history_;
  const ProgramChange& change_;
  const Rows& rows_;
  uint32_t next_ = 0;
  std::vector<DatedRequest> requests_;
};

}  // namespace

Holdings ProgramChange::Of(RowId row) const {
  const auto changed = changed_.find(row);
  if (changed != changed_.end()) return changed->second;
  const Rows& rows = trace_.rows;
  return {{rows.birth[row], rows.death[row], rows.size[row]}};
}

void ProgramChange::Set(RowId row, const Holdings& holdings) {
  Holdings& kept = changed_[row];
  kept.clear();
  for (const Holding& holding : holdings) {
    if (holding.begin < holding.end && holding.bytes > 0) kept.push_back(holding);
  }
}

void ProgramChange::Add(const Holding& holding) {
  if (holding.begin < holding.end && holding.bytes > 0) added_.push_back(holding);
}

template <typename Visit>
void ProgramChange::ForEachHolding(Visit visit) const {
  const Rows& rows = trace_.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.device[row] != device_ || !IsAllocated(rows, row)) continue;
    const auto changed = changed_.find(row);
    if (changed == changed_.end()) {
      visit(Holding{rows.birth[row], rows.death[row], rows.size[row]});
    } else {
      for (const Holding& holding : changed->second) visit(holding);
    }
  }
  for (const Holding& holding : added_) visit(holding);
}

ProgramChange::Peak ProgramChange::FindPeak() const {
  const Step last = trace_.last_step();
  std::vector<int64_t> deltas(last + 1, 0);
  ForEachHolding([&](const Holding& holding) {
    deltas[std::min(holding.begin, last)] += static_cast<int64_t>(holding.bytes);
    if (holding.end <= last) deltas[holding.end] -= static_cast<int64_t>(holding.bytes);
  });
  Peak peak;
  int64_t held = 0;
  for (Step step = 0; step <= last; ++step) {
    held += deltas[step];
    if (held > static_cast<int64_t>(peak.bytes)) peak = {static_cast<uint64_t>(held), step};
  }
  return peak;
}

uint64_t ProgramChange::HeldAt(Step step) const {
  uint64_t bytes = 0;
  ForEachHolding([&](const Holding& holding) {
    if (holding.begin <= step && step < holding.end) bytes += holding.bytes;
  });
  return bytes;
}

AllocatorHistory ChangedHistory(const AllocatorHistory& history, const ProgramChange& change) {
  return HistoryChanger(history, change).Change();
}

}  // namespace gmt::analysis
