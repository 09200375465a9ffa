#include "analysis/whatif/allocator_history.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "analysis/fragmentation/segment_map.h"
#include "analysis/trace/device_use.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kMaxPools = UINT16_MAX;

absl::Status ReadSettings(const Trace& trace, AllocatorHistory& history) {
  AllocatorSettings& settings = history.settings;
  for (const NamedText& setting : trace.settings) {
    if (setting.name == "PYTORCH_NO_CUDA_MEMORY_CACHING" && !setting.text.empty()) {
      return absl::FailedPreconditionError(
          "PYTORCH_NO_CUDA_MEMORY_CACHING: the program ran without PyTorch's caching allocator");
    }
  }
  if (const NamedText* variable = AllocatorVariable(trace.settings, history.torch)) {
    const std::string_view text = variable->value();
    if (absl::Status status = settings.Change(text, history.torch); !status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the recorded settings cannot be replayed: ", status.message()));
    }
    for (const std::string& option : SplitAllocatorOptions(text)) {
      if (!AllocatorSettings::IsWithoutEffect(option)) continue;
      absl::StrAppend(&history.other_options, history.other_options.empty() ? "" : ",", option);
    }
  }
  // PyTorch's own snapshots say what was in force.
  for (const NamedText& setting : trace.settings) {
    if (setting.name == "expandable_segments")
      settings.expandable_segments = setting.text == "true";
    int64_t bytes = 0;
    if (setting.name == "max_split_size" && absl::SimpleAtoi(setting.text, &bytes) && bytes > 0)
      settings.max_split_bytes = static_cast<uint64_t>(bytes);
  }
  return absl::OkStatus();
}

// The average time of some calls.
struct Cost {
  uint64_t calls = 0, ns = 0;

  // nullopt: there were none, or their time is not recorded.
  std::optional<double> average() const {
    if (calls == 0 || ns == 0) return std::nullopt;
    return static_cast<double>(ns) / static_cast<double>(calls);
  }
};

class HistoryReader {
 public:
  HistoryReader(const Examination& examination, int32_t device)
      : examination_(examination),
        trace_(examination.trace()),
        rows_(trace_.rows),
        device_(device) {}

  absl::StatusOr<AllocatorHistory> Read() && {
    if (absl::Status status = Check(); !status.ok()) return status;
    ReadDevice();
    ReadCosts();
    ReadStart();
    ReadSteps();
    if (!has_allocations_) {
      return absl::FailedPreconditionError(
          "it has no allocations of PyTorch on this GPU in its history: there is nothing to "
          "replay");
    }
    ReadCapacity();
    return std::move(history_);
  }

 private:
  absl::Status Check() {
    const auto heap = std::find(trace_.heaps.begin(), trace_.heaps.end(), "pytorch");
    pytorch_ = heap == trace_.heaps.end() ? 0 : static_cast<size_t>(heap - trace_.heaps.begin());
    if (pytorch_ == 0) {
      return absl::FailedPreconditionError(
          "no blocks of PyTorch's caching allocator are recorded: there is nothing to replay");
    }
    if (trace_.unknowns.gaps > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("events are missing in ", trace_.unknowns.gaps,
                       trace_.unknowns.gaps == 1 ? " place" : " places"));
    }
    history_.torch = TorchVersionOf(trace_.libraries);
    return ReadSettings(trace_, history_);
  }

  bool IsSegment(RowId row) const {
    return rows_.heap[row] == kDriverHeap && rows_.device[row] == device_ &&
           (rows_.flags[row] & kRowHoldsBlocks) != 0;
  }
  bool IsBlock(RowId row) const {
    return rows_.heap[row] == pytorch_ && rows_.device[row] == device_ && !rows_.IsRegion(row);
  }

  uint32_t NumberOf(uint64_t stream) {
    return streams_.try_emplace(stream, static_cast<uint32_t>(streams_.size())).first->second;
  }
  uint16_t PoolNumber(uint64_t key) {
    const auto number = static_cast<uint32_t>(pools_.size()) + 1;
    return static_cast<uint16_t>(
        std::min(pools_.try_emplace(key, number).first->second, kMaxPools));
  }
  uint16_t PoolOf(RowId row) {
    if (const std::optional<uint64_t> pool = rows_.Pool(row))
      return *pool == 0 ? 0 : PoolNumber(*pool * 2);
    // Rows are read in the order of their births.
    const std::vector<Capture>& captures = trace_.captures;
    const Step birth = rows_.birth[row];
    while (first_capture_ < captures.size() && captures[first_capture_].end < birth)
      ++first_capture_;
    for (size_t i = first_capture_; i < captures.size() && captures[i].begin < birth; ++i) {
      if (birth <= captures[i].end && captures[i].stream == rows_.stream[row])
        return PoolNumber(i * 2 + 1);
    }
    return 0;
  }

  void ReadDevice() {
    history_.device = device_;
    for (const GpuFacts& gpu : trace_.devices) {
      if (static_cast<int32_t>(gpu.index) == device_) history_.device_bytes = gpu.total_bytes;
    }
  }

  // A page of an expandable segment takes a call that creates it and one that maps it.
  void ReadCosts() {
    Cost allocate, release, map, unmap;
    for (const DriverCall& call : trace_.driver_calls) {
      if (call.row == kNoRow || !IsSegment(call.row)) continue;
      const bool is_page = (rows_.flags[call.row] & kRowHandle) != 0;
      Cost& cost = call.is_return() ? (is_page ? unmap : release) : (is_page ? map : allocate);
      cost.calls += call.kind != MAP && call.kind != UNMAP;
      cost.ns += call.duration_ns;
    }
    history_.costs = {allocate.average(), release.average(), map.average(), unmap.average()};
  }

  void ReadStart() {
    for (const SegmentMap& segment : SegmentsAfter(trace_, device_, 0)) {
      StartSegment start;
      start.place = {NumberOf(segment.stream.value_or(0)),
                     segment.is_private ? PoolNumber(UINT64_MAX) : uint16_t{0}};
      start.is_small = segment.is_small;
      start.is_expandable = segment.is_expandable;
      for (size_t i = 0; i < segment.pieces.size(); ++i) {
        const Piece& piece = segment.pieces[i];
        // Free pages that could be released are a piece of their own, but no block.
        if (i > 0 && piece.is_free() && segment.pieces[i - 1].is_free()) {
          start.pieces.back().size += piece.size;
          continue;
        }
        CachingAllocator::Piece& added = start.pieces.emplace_back();
        added.size = piece.size;
        if (piece.row != kNoRow) added.block = piece.row;
        added.is_awaited = piece.kind == Piece::kAwaiting;
      }
      history_.start.push_back(std::move(start));
      history_.segment_addresses[segment.size].push_back(segment.address);
      reserved_ += segment.size;
    }
    for (RowId row = 0; row < rows_.count(); ++row) {
      if (rows_.birth[row] == 0 && IsOutside(row)) outside_ += rows_.size[row];
    }
    history_.peak_reserved = reserved_;
    if (outside_ > 0) Add({AllocatorRequest::kOutside, 0, 0, 0, outside_});
  }

  bool IsOutside(RowId row) const {
    return rows_.heap[row] == kDriverHeap && rows_.device[row] == device_ &&
           (rows_.flags[row] & kRowHoldsBlocks) == 0 && IsInDriverFigure(rows_, row);
  }

  void ReadSteps() {
    size_t completion = 0, failed = 0;
    for (Step step = 0; step <= trace_.last_step(); ++step) {
      step_ = step;
      ReadActions(step);
      if (step > 0) ReadStep(trace_.steps[step - 1]);
      for (; completion < trace_.completions.size() && trace_.completions[completion].step <= step;
           ++completion) {
        const RowId row = trace_.completions[completion].row;
        if (IsBlock(row)) Add({AllocatorRequest::kComplete, 0, 0, row, 0});
      }
      for (; failed < trace_.failed.size() && trace_.failed[failed].step <= step; ++failed) {
        const FailedAllocation& request = trace_.failed[failed];
        if (request.heap != pytorch_ || request.device != device_) continue;
        Add({AllocatorRequest::kFailed, 0, NumberOf(request.stream),
             static_cast<uint32_t>(rows_.count() + failed), request.size});
      }
    }
  }

  // The actions whose first call of the driver is at this step.
  void ReadActions(Step step) {
    const std::vector<AllocatorAction>& actions = examination_.allocator_actions();
    for (; action_ < actions.size() && actions[action_].step <= step; ++action_) {
      const AllocatorAction& action = actions[action_];
      if (action.device != device_) continue;
      if (action.kind == AllocatorAction::kRetry) {
        if (action.requested_bytes > 0)
          too_much_ = std::min(too_much_, reserved_ + outside_ + action.requested_bytes);
      }
      if (action.kind == AllocatorAction::kEmptyCache || action.kind == AllocatorAction::kRelease)
        Add({AllocatorRequest::kEmptyCache, 0, 0, 0, 0});
    }
  }

  void ReadStep(const StepRecord& record) {
    if (record.row == kNoRow) return;
    const RowId row = record.row;
    if (IsBlock(row)) {
      record.is_death ? ReadFree(row) : ReadAllocation(row);
    } else if (IsSegment(row)) {
      const uint64_t bytes = rows_.size[row];
      record.is_death ? reserved_ -= bytes : reserved_ += bytes;
      history_.peak_reserved = std::max(history_.peak_reserved, reserved_);
      history_.segment_events.push_back({RequestOf(record), record.is_death, bytes});
      // The memory of an expandable segment is recorded as pages, which are not segments.
      if (!record.is_death && !history_.settings.expandable_segments)
        history_.segment_addresses[bytes].push_back(rows_.address[row]);
    } else if (IsOutside(row)) {
      record.is_death ? outside_ -= rows_.size[row] : outside_ += rows_.size[row];
      Add({AllocatorRequest::kOutside, 0, 0, 0, outside_});
    }
  }

  // The emptying of the cache that releases the segment; otherwise the next request.
  uint32_t RequestOf(const StepRecord& record) const {
    const auto next = static_cast<uint32_t>(history_.requests.size());
    const bool is_emptied = record.is_death && next > 0 &&
                            history_.requests.back().kind == AllocatorRequest::kEmptyCache;
    return is_emptied ? next - 1 : next;
  }

  void ReadAllocation(RowId row) {
    has_allocations_ = true;
    Add({AllocatorRequest::kAllocate, PoolOf(row), NumberOf(rows_.stream[row]), row,
         rows_.Requested(row).value_or(rows_.size[row])});
  }

  void ReadFree(RowId row) {
    const bool waits = (rows_.flags[row] & kRowAwaited) != 0;
    Add({waits ? AllocatorRequest::kFreeWhenAwaited : AllocatorRequest::kFree, 0, 0, row, 0});
  }

  void Add(AllocatorRequest request) {
    request.step = step_;
    history_.requests.push_back(request);
  }

  void ReadCapacity() {
    FindCapacity();
    // A refusal that led to a retry is closer than any estimate.
    const uint64_t refused = too_much_ - std::min(too_much_, kMiB);
    if (too_much_ != UINT64_MAX && refused >= history_.peak_reserved)
      history_.capacity = std::min(history_.capacity.value_or(refused), refused);
  }

  // The most reliable: what the driver had left when a request failed. Otherwise the device less
  // what its fullest sample shows of others.
  void FindCapacity() {
    for (size_t i = trace_.failed.size(); i-- > 0;) {
      const FailedAllocation& failed = trace_.failed[i];
      if (failed.device != device_ || !failed.driver_free) continue;
      history_.capacity = HeldAfter(failed.step) + *failed.driver_free;
      return;
    }
    for (const DeviceUse& use : FindDeviceUse(trace_)) {
      if (use.device != device_ || use.last.total_bytes == 0) continue;
      const uint64_t others =
          use.last.used_bytes - std::min(use.last.used_bytes, use.last.recorded_bytes);
      const uint64_t capacity = use.last.total_bytes - std::min(use.last.total_bytes, others);
      history_.capacity = std::min(history_.capacity.value_or(capacity), capacity);
      if (history_.device_bytes == 0) history_.device_bytes = use.last.total_bytes;
    }
    if (!history_.capacity && history_.device_bytes > 0) history_.capacity = history_.device_bytes;
  }

  uint64_t HeldAfter(Step step) const {
    uint64_t bytes = 0;
    for (RowId row = 0; row < rows_.count(); ++row) {
      if ((IsSegment(row) || IsOutside(row)) && rows_.HeldAfter(row, step))
        bytes += rows_.size[row];
    }
    return bytes;
  }

  const Examination& examination_;
  const Trace& trace_;
  const Rows& rows_;
  const int32_t device_;
  size_t pytorch_ = 0;
  Step step_ = 0;
  bool has_allocations_ = false;
  size_t action_ = 0;
  size_t first_capture_ = 0;        // that has not ended
  uint64_t too_much_ = UINT64_MAX;  // that the driver refused to provide
  uint64_t reserved_ = 0, outside_ = 0;
  absl::flat_hash_map<uint64_t, uint32_t> streams_, pools_;
  AllocatorHistory history_;
};

}  // namespace

absl::StatusOr<AllocatorHistory> HistoryOf(const Examination& examination, int32_t device) {
  return HistoryReader(examination, device).Read();
}

}  // namespace gmt::analysis
