#include "analysis/report/allocators.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/examination/replay.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/device_use.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

std::string_view NameOfMemory(uint8_t memory) {
  switch (memory) {
    case DEVICE:
      return "cudaMalloc";
    case MANAGED:
      return "cudaMallocManaged";
    case PINNED:
      return "pinned memory";
    case REGISTERED:
      return "registered memory";
    case POOL:
      return "cudaMallocAsync";
    case VMM:
    case MULTICAST:
      return "cuMemCreate";
    case ARRAY:
    case MIPMAPPED:
      return "arrays";
    case GRAPH:
      return "graphs";
    case IPC:
    case EXTERNAL:
    case GRAPHICS:
      return "imported memory";
    default:
      return "driver";
  }
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Returns the library between the driver and PyTorch that allocated a segment: that of a MemPool
// with a pluggable allocator. "" if it is PyTorch itself or unknown.
std::string ForeignLibrary(const std::vector<FrameText>& frames) {
  for (const FrameText& frame : frames) {
    const std::string_view module =
        std::string_view(frame.module).substr(frame.module.find_last_of('/') + 1);
    if (frame.is_python() || Contains(module, "libc10") || Contains(module, "libtorch")) return "";
    const bool is_driver =
        module.starts_with("libcuda") || module.empty() || module.starts_with("libgpumemtrace");
    if (!is_driver) return std::string(module);
  }
  return "";
}

class AllocatorFinder {
 public:
  AllocatorFinder(const Trace& trace, const RowKinds& kinds, const format::Definitions& definitions,
                  const symbols::FrameRules& rules, const std::map<int32_t, Step>& instants)
      : trace_(trace), rows_(trace.rows), kinds_(kinds), definitions_(definitions), rules_(rules) {
    for (const RowKind& kind : kinds_.all()) {
      const auto instant = instants.find(kind.device);
      Use use;
      if (instant != instants.end()) {
        use.is_segment = kind.heap == kDriverHeap && kind.Has(kRowHoldsBlocks);
        use.counts = IsAllocated(kind) && !kind.is_region();
        use.instant = instant->second;
      }
      by_kind_.push_back(use);
    }
  }

  std::vector<AllocatorUse> Find() && {
    for (const RowId row : kinds_.from_before()) Apply(row, false, 0);
    const Step last_step = trace_.last_step();
    for (Step step = 1; step <= last_step; ++step) {
      const StepRecord record = trace_.steps[step - 1];
      if (record.row != kNoRow) Apply(record.row, record.is_death, step);
    }
    std::vector<AllocatorUse> uses;
    for (auto& [key, state] : states_) {
      state.use.peak_bytes = state.amount.peak;
      state.use.peak_t_ns = trace_.TimeOf(state.amount.peak_step);
      uses.push_back(std::move(state.use));
    }
    std::sort(uses.begin(), uses.end(), [](const AllocatorUse& a, const AllocatorUse& b) {
      return std::tuple(a.device == kHostDevice, a.device, b.peak_bytes, a.name) <
             std::tuple(b.device == kHostDevice, b.device, a.peak_bytes, b.name);
    });
    return uses;
  }

 private:
  struct State {
    AllocatorUse use;
    Amount amount;
  };

  // What is done with rows of a kind.
  struct Use {
    bool is_segment = false, counts = false;
    Step instant = 0;  // the moment at which the device's memory is reported
    // The allocator that has the rows, if there are no MemPools. Null until the first row.
    State* state = nullptr;
  };

  void Apply(RowId row, bool is_death, Step step) {
    Use& use = by_kind_[kinds_.NumberOf(row)];
    if (use.is_segment) NoteSegment(row, is_death);
    if (!use.counts) return;
    const uint64_t bytes = rows_.size[row];
    State& state = StateOf(row, is_death, use);
    if (is_death) return state.amount.Remove(bytes);
    state.amount.Add(bytes);
    state.amount.NotePeak(step);
    if (!rows_.HeldAfter(row, use.instant)) return;
    state.use.live_bytes += bytes;
    ++state.use.live_count;
  }

  State& StateOf(RowId row, bool is_death, Use& use) {
    if (!foreign_.empty() || !in_pools_.empty()) return NamedState(row, is_death);
    if (use.state == nullptr) use.state = &NamedState(row, is_death);
    return *use.state;
  }

  State& NamedState(RowId row, bool is_death) {
    std::string name;
    if (const auto known = in_pools_.find(row); known != in_pools_.end()) {
      name = known->second;
    } else {
      name = NameOfRow(row);
      if (!is_death && absl::StartsWith(name, kMemPool)) in_pools_.emplace(row, name);
    }
    State& state = states_[{rows_.device[row], name}];
    state.use.device = rows_.device[row];
    state.use.name = std::move(name);
    return state;
  }

  std::string NameOfRow(RowId row) const {
    if (rows_.heap[row] <= kHostHeap) return std::string(NameOfMemory(rows_.memory[row]));
    const auto behind = foreign_.upper_bound({rows_.device[row], rows_.address[row]});
    if (behind != foreign_.begin()) {
      const auto& [place, segment] = *std::prev(behind);
      const bool inside = place.first == rows_.device[row] &&
                          rows_.address[row] - place.second < rows_.size[segment.row];
      if (inside) return absl::StrCat(kMemPool, segment.library, ")");
    }
    const std::string& heap = trace_.heaps[rows_.heap[row]];
    if (rows_.Pool(row).value_or(0) != 0) return absl::StrCat("private pools (", heap, ")");
    return absl::StrCat("caching allocator (", heap, ")");
  }

  // Tracks held segments that a library allocated for its own pool.
  void NoteSegment(RowId row, bool is_death) {
    const uint32_t stack = rows_.stack[row];
    const auto [library, is_new] = libraries_.try_emplace(stack);
    if (is_new) library->second = ForeignLibrary(DescribeStack(definitions_, stack, rules_));
    if (library->second.empty()) return;
    const std::pair place{rows_.device[row], rows_.address[row]};
    if (is_death) {
      foreign_.erase(place);
    } else {
      foreign_[place] = {row, library->second};
    }
  }

  static constexpr char kMemPool[] = "MemPool (";
  struct Segment {
    RowId row = kNoRow;
    std::string library;
  };
  const Trace& trace_;
  const Rows& rows_;
  const RowKinds& kinds_;
  const format::Definitions& definitions_;
  const symbols::FrameRules& rules_;
  std::vector<Use> by_kind_;
  std::map<std::pair<int32_t, std::string>, State> states_;  // by device and name
  std::map<std::pair<int32_t, uint64_t>, Segment> foreign_;  // by device and address
  absl::flat_hash_map<uint32_t, std::string> libraries_;     // by stack
  absl::flat_hash_map<RowId, std::string> in_pools_;         // blocks
};

std::optional<uint64_t> FreeAfter(const Trace& trace, int32_t device, Step step,
                                  const std::optional<uint64_t>& total) {
  const DeviceSample* last = nullptr;
  size_t index = 0;
  for (size_t i = 0; i < trace.samples.size(); ++i) {
    const DeviceSample& sample = trace.samples[i];
    const bool says = sample.free_bytes || sample.total_bytes > 0;
    if (sample.device == device && sample.step <= step && says) last = &sample, index = i;
  }
  if (last == nullptr) return std::nullopt;
  const uint64_t free = last->free_bytes
                            ? *last->free_bytes
                            : last->total_bytes - std::min(last->total_bytes, last->used_bytes);
  uint64_t recorded = 0;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.device[row] == device && trace.rows.HeldAfter(row, step) &&
        IsInDriverFigure(trace.rows, row)) {
      recorded += trace.rows.size[row];
    }
  }
  const auto now = static_cast<int64_t>(free + RecordedAtSamples(trace)[index] - recorded);
  const auto most = static_cast<int64_t>(total.value_or(INT64_MAX));
  return static_cast<uint64_t>(std::clamp<int64_t>(now, 0, most));
}

}  // namespace

uint64_t Room::largest_request() const {
  return std::max(largest_cached_bytes, free_bytes.value_or(0) + releasable_bytes);
}

std::vector<AllocatorUse> FindAllocators(const Trace& trace, const RowKinds& kinds,
                                         const format::Definitions& definitions,
                                         const symbols::FrameRules& rules,
                                         const std::map<int32_t, Step>& instants) {
  return AllocatorFinder(trace, kinds, definitions, rules, instants).Find();
}

Room RoomAfter(const Examination& examination, int32_t device, Step step) {
  const Trace& trace = examination.trace();
  Room room;
  room.device = device;
  for (const GpuFacts& known : trace.devices) {
    if (static_cast<int32_t>(known.index) == device && known.total_bytes > 0)
      room.total_bytes = known.total_bytes;
  }
  room.free_bytes = FreeAfter(trace, device, step, room.total_bytes);
  const Fragmentation pieces = FragmentationAfter(examination, device, step);
  room.largest_cached_bytes = pieces.largest_free_bytes;
  room.releasable_bytes = pieces.split.releasable;
  return room;
}

}  // namespace gmt::analysis
