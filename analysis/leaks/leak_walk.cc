#include "analysis/leaks/leak_walk.h"

#include <algorithm>
#include <cstddef>

namespace gmt::analysis {
namespace {

class Walker {
 public:
  Walker(const Trace& trace, const std::vector<Cycle>& cycles, std::optional<int32_t> device)
      : trace_(trace), rows_(trace.rows), cycles_(cycles), device_(device), held_(rows_.count()) {}

  LeakWalk Walk() && {
    for (RowId row = 0; row < rows_.count(); ++row) {
      if (rows_.birth[row] == 0) AddFromBefore(row);
    }
    const Step end = cycles_.empty() ? 0 : std::min(cycles_.back().end, trace_.last_step());
    Step step = 0;
    for (size_t cycle = 0; cycle < cycles_.size(); ++cycle) {
      is_recent_ = cycle + kRecentCycles >= cycles_.size();
      for (; step < std::min(cycles_[cycle].end, end); ++step) {
        CompleteUntil(step);
        Apply(trace_.steps[step]);
      }
      CompleteUntil(step);
      out_.detector.OnCycleEnd();
    }
    return std::move(out_);
  }

 private:
  enum Counted : uint8_t { kNot, kSegment, kMemory };
  struct Held {
    LeakDetector::Site site = kNoSite;
    uint32_t cycle = 0;
  };
  static constexpr LeakDetector::Site kNoSite = UINT32_MAX;
  struct Last {
    SiteKey key;
    LeakDetector::Site site = kNoSite;
  };
  // Undefined ids can have any value.
  static constexpr uint32_t kMaxKnownStacks = 1 << 20;

  Counted CountedAs(RowId row) const {
    if (rows_.IsRegion(row) || (device_ && rows_.device[row] != *device_)) return kNot;
    switch (rows_.memory[row]) {
      case IPC:
      case EXTERNAL:
      case GRAPHICS:
        return kNot;
      default:
        return (rows_.flags[row] & kRowHoldsBlocks) != 0 ? kSegment : kMemory;
    }
  }
  bool IsAwaited(RowId row) const { return (rows_.flags[row] & kRowAwaited) != 0; }

  void AddFromBefore(RowId row) {
    const uint64_t size = rows_.size[row];
    switch (CountedAs(row)) {
      case kNot:
        return;
      case kSegment:
        return Segments(row).Birth(out_.detector.grid(), size);
      case kMemory:
        if (rows_.stack[row] != 0) return AddBirth(row);
        NoteLive(row, size, false);
        return out_.detector.OnHeldBefore(rows_.device[row], size);
    }
  }

  void Apply(const StepRecord record) {
    if (record.row == kNoRow) return;
    switch (CountedAs(record.row)) {
      case kNot:
        return;
      case kSegment: {
        SiteHistory& segments = Segments(record.row);
        const uint64_t size = rows_.size[record.row];
        return record.is_death ? segments.Free(out_.detector.grid(), size, 0)
                               : segments.Birth(out_.detector.grid(), size);
      }
      case kMemory:
        if (!record.is_death) return AddBirth(record.row);
        return IsAwaited(record.row) ? Await(record.row) : Free(record.row);
    }
  }

  void AddBirth(RowId row) {
    SiteKey key;
    key.device = rows_.device[row];
    key.heap = rows_.heap[row];
    key.stack = rows_.stack[row];
    key.forward_stack = rows_.forward_stack[row];
    const LeakDetector::Site site = SiteOf(key, rows_.size[row]);
    held_[row] = {site, out_.detector.cycle()};
    out_.detector.OnBirth(site, rows_.size[row]);
    NoteLive(row, rows_.size[row], false);
  }

  // Most births of a stack have the same key as the stack's previous birth.
  LeakDetector::Site SiteOf(const SiteKey& key, uint64_t size) {
    if (key.stack == 0 || key.stack > kMaxKnownStacks) return out_.detector.SiteOf(key, size);
    if (key.stack >= last_of_stacks_.size()) last_of_stacks_.resize(key.stack + size_t{1});
    Last& last = last_of_stacks_[key.stack];
    if (last.site == kNoSite || !(last.key == key)) {
      last = {key, out_.detector.SiteOf(key, size)};
    }
    return last.site;
  }

  void Await(RowId row) {
    const LeakDetector::Site site = held_[row].site;
    if (site != kNoSite) out_.detector.OnAwaits(site, rows_.size[row]);
  }
  void CompleteUntil(Step step) {
    for (; completion_ < trace_.completions.size(); ++completion_) {
      const Completion& done = trace_.completions[completion_];
      if (done.step > step) return;
      if (done.row >= rows_.count() || CountedAs(done.row) != kMemory || !IsAwaited(done.row))
        continue;
      const LeakDetector::Site site = held_[done.row].site;
      if (site != kNoSite) out_.detector.OnAwaited(site, rows_.size[done.row]);
      Free(done.row);
    }
  }
  void Free(RowId row) {
    const Held& held = held_[row];
    const uint64_t size = rows_.size[row];
    NoteLive(row, size, true);
    if (held.site == kNoSite)
      return out_.detector.OnFreeOfUnknown(rows_.device[row], rows_.heap[row], size);
    out_.detector.OnFree(held.site, size, held.cycle);
  }

  void NoteLive(RowId row, uint64_t bytes, bool is_death) {
    const int32_t device = rows_.device[row];
    if (live_ == nullptr || device != live_device_) {
      live_ = &live_of_devices_[device];
      live_device_ = device;
    }
    *live_ += is_death ? -bytes : bytes;
    if (!is_recent_) return;
    uint64_t& peak = out_.recent_peaks[device];
    peak = std::max(peak, *live_);
  }
  SiteHistory& Segments(RowId row) { return out_.segments[rows_.device[row]]; }

  const Trace& trace_;
  const Rows& rows_;
  const std::vector<Cycle>& cycles_;
  const std::optional<int32_t> device_;
  LeakWalk out_;
  std::vector<Held> held_;  // by row
  std::vector<Last> last_of_stacks_;
  std::map<int32_t, uint64_t> live_of_devices_;
  uint64_t* live_ = nullptr;  // of live_device_, the last one looked up
  int32_t live_device_ = 0;
  size_t completion_ = 0;
  bool is_recent_ = false;
};

}  // namespace

LeakWalk WatchCycles(const Trace& trace, const std::vector<Cycle>& cycles,
                     std::optional<int32_t> device) {
  return Walker(trace, cycles, device).Walk();
}

}  // namespace gmt::analysis
