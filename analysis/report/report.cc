#include "analysis/report/report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/categories/alive_by_category.h"
#include "analysis/examination/layers.h"
#include "analysis/parallel.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kAllHeaps = UINT32_MAX;

absl::StatusOr<uint32_t> SelectHeap(const Trace& trace, const std::string& name) {
  if (name.empty()) return kAllHeaps;
  const auto found = std::find(trace.heaps.begin(), trace.heaps.end(), name);
  if (found != trace.heaps.end()) return static_cast<uint32_t>(found - trace.heaps.begin());
  return absl::NotFoundError(absl::StrCat(
      "no heap '", name, "' was recorded; there is: ", absl::StrJoin(trace.heaps, ", ")));
}

void SortRows(std::vector<ReportRow>* rows) {
  std::sort(rows->begin(), rows->end(), [](const ReportRow& a, const ReportRow& b) {
    return std::tie(b.bytes, a.device, a.heap, a.id) < std::tie(a.bytes, b.device, b.heap, b.id);
  });
}

template <typename T>
void Append(const std::vector<T>& more, std::vector<T>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

class ReportMaker {
 public:
  ReportMaker(const Examination& examination, const Categories& categories,
              const ReportOptions& options, uint32_t heap)
      : examination_(examination),
        categories_(categories),
        trace_(examination.trace()),
        definitions_(examination.definitions()),
        options_(options),
        heap_(heap),
        of_window_(IsAll(options.window)
                       ? std::nullopt
                       : std::optional<Replay>(std::in_place, trace_, options.window)),
        replay_(of_window_ ? *of_window_ : examination.replay()),
        row_groups_(examination, categories, options.by),
        held_before_(FindHeldBefore(trace_)) {}

  absl::StatusOr<Report> Make() {
    report_.by = options_.by;
    for (int32_t device : SelectedDevices()) {
      absl::Status status = AddDevice(device);
      if (!status.ok()) return status;
    }
    if (options_.device && report_.devices.empty()) {
      return absl::NotFoundError(
          absl::StrCat("device ", *options_.device, " holds nothing in this recording"));
    }
    std::map<int32_t, Step> instants;
    for (const ReportDevice& device : report_.devices) instants[device.index] = device.at.step;
    const RowKinds& kinds = examination_.kinds();
    const symbols::FrameRules& rules = examination_.rules();
    // Only the first part uses the examination, which is for one thread.
    RunBoth([&] { AddParts(instants); },
            [&] {
              report_.allocators = FindAllocators(trace_, kinds, definitions_, rules, instants);
              report_.streams =
                  MakeStreamReport(trace_, definitions_, instants, options_.window, rules);
            });
    return std::move(report_);
  }

 private:
  // Adds all but the parts that are computed at the same time.
  void AddParts(const std::map<int32_t, Step>& instants) {
    for (auto& [step, devices] : devices_by_step_) {
      AddRows(step, devices);
      AddPending(step, devices);
    }
    FinishRows();
    report_.all_time = FindAllTime(examination_);
    report_.allocator = MakeAllocatorReport(examination_, instants, options_.window);
    for (const auto& [device, step] : instants) {
      if (device != kHostDevice) report_.rooms.push_back(RoomAfter(examination_, device, step));
    }
  }

  struct Group {
    explicit Group(const Categories& categories) : by_category(categories) {}
    uint64_t bytes = 0, count = 0;
    std::map<uint32_t, uint64_t> by_stack;
    CategoryTotals by_category;
    AliveSums alive;
  };

  static bool IsAll(const Window& window) {
    return window.from_ns == INT64_MIN && window.to_ns == INT64_MAX;
  }

  // GPUs first, host memory last.
  std::vector<int32_t> SelectedDevices() const {
    std::set<int32_t> gpus;
    bool host = false;
    for (const auto& [key, totals] : replay_.heaps()) {
      if (heap_ != kAllHeaps && key.second != heap_) continue;
      if (key.first == kHostDevice)
        host = true;
      else
        gpus.insert(key.first);
    }
    if (heap_ == kAllHeaps) {
      for (const GpuFacts& gpu : trace_.devices) gpus.insert(static_cast<int32_t>(gpu.index));
    }
    std::vector<int32_t> devices(gpus.begin(), gpus.end());
    if (host) devices.push_back(kHostDevice);
    std::erase_if(devices, [&](int32_t device) {
      return (options_.device && device != *options_.device) || options_.without.contains(device);
    });
    return devices;
  }

  // The amounts on a device that the options select: everything, and what is allocated. For a
  // single heap both are the whole heap.
  struct Amounts {
    Amount held, allocated;
  };
  Amounts Selected(int32_t device) const {
    if (heap_ != kAllHeaps) {
      const auto found = replay_.heaps().find({device, heap_});
      if (found == replay_.heaps().end()) return {};
      return {found->second.bytes, found->second.bytes};
    }
    const auto found = replay_.devices().find(device);
    if (found == replay_.devices().end()) return {};
    return {found->second.bytes, found->second.allocated};
  }

  absl::Status AddDevice(int32_t device) {
    ReportDevice out;
    out.index = device;
    for (const GpuFacts& known : trace_.devices) {
      if (static_cast<int32_t>(known.index) != device) continue;
      out.name = known.name;
      if (known.total_bytes > 0) out.total_bytes = known.total_bytes;
    }
    const auto [held, allocated] = Selected(device);
    out.peak_bytes = held.peak;
    out.peak_t_ns = trace_.TimeOf(held.peak_step);
    out.peak_allocated_bytes = allocated.peak;
    out.peak_allocated_t_ns = trace_.TimeOf(allocated.peak_step);
    if (options_.at.kind == At::kPeak) {
      out.at = {allocated.peak_step, out.peak_allocated_t_ns, "peak"};
    } else {
      auto instant = InstantOn(examination_, options_.at, device);
      if (!instant.ok()) return instant.status();
      out.at = *std::move(instant);
    }
    AddHeaps(out);
    if (options_.sums != nullptr) AddSums(*options_.sums, out);
    devices_by_step_[out.at.step].insert(device);
    report_.devices.push_back(std::move(out));
    return absl::OkStatus();
  }

  void AddHeaps(ReportDevice& device) const {
    const auto device_totals = replay_.devices().find(device.index);
    for (const auto& [key, totals] : replay_.heaps()) {
      if (key.first != device.index || (heap_ != kAllHeaps && key.second != heap_)) continue;
      ReportHeap heap;
      heap.heap = trace_.heaps[key.second];
      heap.peak_live_bytes = totals.bytes.peak;
      heap.peak_live_t_ns = trace_.TimeOf(totals.bytes.peak_step);
      heap.allocations = totals.allocations;
      heap.frees = totals.frees;
      const Amount& segments = device_totals->second.segments;
      if (key.second > kHostHeap) heap.rounding_bytes = 0;
      if (heap.heap == "pytorch" && segments.peak > 0) {
        heap.reserved_bytes = 0;
        heap.peak_reserved_bytes = segments.peak;
        heap.peak_reserved_t_ns = trace_.TimeOf(segments.peak_step);
      }
      for (const HeldBefore& before : held_before_) {
        if (before.device == device.index && before.heap == heap.heap) heap.before = before;
      }
      device.heaps.push_back(std::move(heap));
    }
  }

  // Replaces what was found in a part of the recording by what is known of all of it.
  static void AddSums(const Aggregates& sums, ReportDevice& device) {
    for (const HeapCounts& counts : sums.heaps()) {
      if (DeviceOf(counts) != device.index) continue;
      if (counts.heap() == "driver" || counts.heap() == "host") {
        device.peak_bytes = counts.peak_bytes();
        device.peak_t_ns = counts.peak_t_ns();
      }
      ReportHeap& heap = HeapNamed(counts.heap(), device);
      heap.peak_live_bytes = counts.peak_bytes();
      heap.peak_live_t_ns = counts.peak_t_ns();
      heap.allocations = counts.allocations();
      heap.frees = counts.frees();
    }
    for (const HeapCounts& driver : sums.heaps()) {
      if (driver.heap() != "driver" || DeviceOf(driver) != device.index) continue;
      for (ReportHeap& heap : device.heaps) {
        if (!heap.peak_reserved_bytes) continue;
        heap.peak_reserved_bytes = driver.peak_segment_bytes();
        heap.peak_reserved_t_ns = driver.peak_segment_t_ns();
      }
    }
  }

  static ReportHeap& HeapNamed(const std::string& name, ReportDevice& device) {
    for (ReportHeap& heap : device.heaps) {
      if (heap.heap == name) return heap;
    }
    device.heaps.emplace_back().heap = name;
    return device.heaps.back();
  }

  // Adds what is held after `step` on `devices`; `step` is their instant.
  void AddRows(Step step, const std::set<int32_t>& devices) {
    const Rows& rows = trace_.rows;
    std::map<int32_t, CategoryTotals> by_category;
    const AliveByCategory alive(trace_, categories_, step);
    for (const OwnBytes& own : OwnBytesAfter(trace_, step)) {
      const int32_t device = rows.device[own.row];
      if (!devices.contains(device)) continue;
      ReportDevice& out = *std::find_if(report_.devices.begin(), report_.devices.end(),
                                        [&](const ReportDevice& d) { return d.index == device; });
      CountHeld(own.row, out);
      const bool selected = heap_ == kAllHeaps || rows.heap[own.row] == heap_;
      const uint64_t bytes = heap_ == kAllHeaps ? own.bytes : rows.size[own.row];
      if (!selected || bytes == 0) continue;
      out.bytes += bytes;
      if (heap_ != kAllHeaps || IsAllocated(rows, own.row) || rows.IsRegion(own.row))
        out.allocated_bytes += bytes;
      Group& group =
          groups_.try_emplace(row_groups_.KeyOf(own.row, alive.roles()), categories_).first->second;
      group.bytes += bytes;
      ++group.count;
      group.by_stack[rows.stack[own.row]] += bytes;
      group.by_category.Add(own.row, bytes);
      alive.AddTo(group.alive, own.row, bytes);
      by_category.try_emplace(device, categories_).first->second.Add(own.row, bytes);
    }
    for (ReportDevice& device : report_.devices) {
      const auto totals = by_category.find(device.index);
      if (totals != by_category.end()) device.categories = totals->second.Uses();
    }
  }

  void CountHeld(RowId row, ReportDevice& device) const {
    const bool segment = (trace_.rows.flags[row] & kRowHoldsBlocks) != 0;
    for (ReportHeap& heap : device.heaps) {
      if (heap.heap == trace_.heaps[trace_.rows.heap[row]]) {
        heap.live_bytes += trace_.rows.size[row];
        const auto requested = trace_.rows.Requested(row);
        if (!requested) {
          heap.rounding_bytes.reset();
        } else if (heap.rounding_bytes && *requested <= trace_.rows.size[row]) {
          *heap.rounding_bytes += trace_.rows.size[row] - *requested;
        }
      }
      if (segment && heap.reserved_bytes) *heap.reserved_bytes += trace_.rows.size[row];
    }
  }

  void AddPending(Step step, const std::set<int32_t>& devices) {
    const Rows& rows = trace_.rows;
    const KindProperty may_await(examination_.kinds(),
                                 [](const RowKind& kind) { return kind.Has(kRowMayAwait); });
    const RowId count = rows.count();
    for (RowId row = 0; row < count; ++row) {
      if (rows.death[row] > step) continue;
      const bool pending = rows.wait[row] != 0 && rows.PendingAfter(row, step);
      if ((!pending && !may_await.Of(row)) || rows.heap[row] <= kHostHeap) continue;
      if (!devices.contains(rows.device[row])) continue;
      for (ReportDevice& device : report_.devices) {
        if (device.index != rows.device[row]) continue;
        for (ReportHeap& heap : device.heaps) {
          if (heap.heap != trace_.heaps[rows.heap[row]]) continue;
          (pending ? heap.pending_bytes : heap.may_await_bytes) += rows.size[row];
        }
      }
    }
  }

  void FinishRows() {
    for (auto& [key, group] : groups_) report_.rows.push_back(RowOf(key, group));
    SortRows(&report_.rows);
    for (const auto& [key, group] : groups_) {
      const auto none = group.by_stack.find(0);
      if (none != group.by_stack.end()) report_.unknown_bytes += none->second;
    }
  }

  int64_t InstantOf(int32_t index) const {
    for (const ReportDevice& device : report_.devices) {
      if (device.index == index) return device.at.t_ns;
    }
    return trace_.end_t_ns;
  }

  ReportRow RowOf(const GroupKey& key, const Group& group) const {
    ReportRow row;
    row.device = key.device;
    row.heap = trace_.heaps[key.heap];
    row.bytes = group.bytes;
    row.count = group.count;
    row.categories = group.by_category.Uses();
    row.alive = group.alive.Sorted(examination_.stacks());
    row.unknown = group.by_stack.size() == 1 && group.by_stack.begin()->first == 0;
    if (key.before != nullptr) {
      row.before = *key.before;
      row.id = key.before->id;
      row.label = key.before->label;
      return row;
    }
    RowGroups::Name name = row_groups_.NameOf(key, InstantOf(key.device));
    row.id = std::move(name.id);
    row.label = std::move(name.label);
    const auto biggest =
        std::max_element(group.by_stack.begin(), group.by_stack.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (IsByCode(options_.by)) row.frames = examination_.stacks().Frames(biggest->first);
    if (options_.by == GroupBy::kLibrary) row.library = key.name;
    if (options_.by != GroupBy::kStack) return row;
    row.forward_frames = examination_.stacks().Frames(static_cast<uint32_t>(key.number >> 32));
    row.recomputed = IsRecomputation(row.frames);
    if (key.heap <= kHostHeap) row.library = examination_.stacks().Library(biggest->first);
    return row;
  }

  const Examination& examination_;
  const Categories& categories_;
  const Trace& trace_;
  const format::Definitions& definitions_;
  const ReportOptions& options_;
  const uint32_t heap_;
  const std::optional<Replay> of_window_;  // set if the window is not the whole recording
  const Replay& replay_;
  RowGroups row_groups_;
  const std::vector<HeldBefore> held_before_;
  Report report_;
  std::map<Step, std::set<int32_t>> devices_by_step_;
  absl::flat_hash_map<GroupKey, Group> groups_;
};

}  // namespace

absl::StatusOr<Report> MakeReport(const Examination& examination, const ReportOptions& options) {
  return MakeReport(examination, Categorize(examination), options);
}

absl::StatusOr<Report> MakeReport(const Examination& examination, const Categories& categories,
                                  const ReportOptions& options) {
  const Trace& trace = examination.trace();
  const auto heap = SelectHeap(trace, options.heap);
  if (!heap.ok()) return heap.status();
  absl::StatusOr<Report> report = ReportMaker(examination, categories, options, *heap).Make();
  if (!report.ok()) return report;
  for (const ReportDevice& device : report->devices) {
    if (device.index == kHostDevice) continue;
    auto profile = MakeStepProfile(examination, categories, device.index);
    if (profile) report->profiles.push_back(*std::move(profile));
    auto tensors = FindTensorFacts(examination, categories, device.index, device.at.step);
    if (tensors) report->tensors.push_back(*std::move(tensors));
  }
  for (DeviceUse& use : FindDeviceUse(trace)) {
    const auto is_shown = [&](const ReportDevice& device) { return device.index == use.device; };
    if (std::any_of(report->devices.begin(), report->devices.end(), is_shown))
      report->uses.push_back(std::move(use));
  }
  return report;
}

void AddDevices(const Report& more, Report* report) {
  Append(more.devices, &report->devices);
  // GPUs in order, then the host, which has no number.
  std::sort(report->devices.begin(), report->devices.end(),
            [](const ReportDevice& a, const ReportDevice& b) {
              return static_cast<uint32_t>(a.index) < static_cast<uint32_t>(b.index);
            });
  Append(more.rows, &report->rows);
  SortRows(&report->rows);
  report->unknown_bytes += more.unknown_bytes;
  Append(more.allocator.devices, &report->allocator.devices);
  Append(more.allocator.driver_calls, &report->allocator.driver_calls);
  Append(more.allocator.reconciliations, &report->allocator.reconciliations);
  Append(more.allocators, &report->allocators);
  Append(more.rooms, &report->rooms);
  Append(more.uses, &report->uses);
  Append(more.profiles, &report->profiles);
  Append(more.tensors, &report->tensors);
}

}  // namespace gmt::analysis
