#include "interop/torch_snapshot.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "analysis/replay.h"
#include "interop/pickle_writer.h"
#include "interop/torch_settings.h"

namespace gmt::interop {
namespace {

using analysis::kHostDevice;
using analysis::kNoRow;
using analysis::Mapping;
using analysis::RowId;
using analysis::Step;
using analysis::Trace;

// Traces stand in a list by device number; a number beyond this is no device.
constexpr int32_t kMaxDevices = 1024;

const char* NameOf(TorchEvent::Action action) {
  switch (action) {
    case TorchEvent::kAlloc:
      return "alloc";
    case TorchEvent::kFreeRequested:
      return "free_requested";
    case TorchEvent::kFreeCompleted:
      return "free_completed";
    case TorchEvent::kSegmentAlloc:
      return "segment_alloc";
    case TorchEvent::kSegmentFree:
      return "segment_free";
    case TorchEvent::kSegmentMap:
      return "segment_map";
    case TorchEvent::kSegmentUnmap:
      return "segment_unmap";
    case TorchEvent::kOutOfMemory:
      return "oom";
    case TorchEvent::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

// The fields of one kind of dict.
class Fields {
 public:
  explicit Fields(PickleWriter& pickle) : pickle_(pickle) {}

  void Int(const char* key, int64_t value) {
    pickle_.String(key);
    pickle_.Int(value);
  }
  void Unsigned(const char* key, uint64_t value) {
    pickle_.String(key);
    pickle_.Unsigned(value);
  }
  void Text(const char* key, std::string_view value) {
    pickle_.String(key);
    pickle_.String(value);
  }
  void Bool(const char* key, bool value) {
    pickle_.String(key);
    pickle_.Bool(value);
  }
  // PyTorch's id of a pool has two parts, of which one is 0: a << 32 | b.
  void Pool(const char* key, uint64_t pool) {
    pickle_.String(key);
    pickle_.IntPair(static_cast<int64_t>(pool >> 32), static_cast<int64_t>(pool & UINT32_MAX));
  }

 private:
  PickleWriter& pickle_;
};

class TraceWriter : public TorchSelectedSink {
 public:
  TraceWriter(const Trace& trace, const analysis::Window& window, const TorchPlan& plan,
              PickleWriter& pickle, TorchFrameWriter& frames)
      : TorchSelectedSink(window, plan.skipped, plan.left),
        trace_(trace),
        pickle_(pickle),
        fields_(pickle),
        frames_(frames) {}

 private:
  void OnSelected(const TorchEvent& event) override {
    pickle_.BeginDict();
    fields_.Text("action", NameOf(event.action));
    fields_.Unsigned(event.action == TorchEvent::kOutOfMemory ? "device_free" : "addr",
                     AddressOf(event));
    fields_.Unsigned("size", std::min<uint64_t>(event.size, INT64_MAX));
    fields_.Unsigned("stream", event.stream);
    fields_.Int("time_us", (trace_.start_unix_ns + event.t_ns) / 1000);
    const uint32_t stack = StackOf(event);
    if (stack != 0) {
      pickle_.String("frames");
      frames_.Write(stack, 0);
    }
    pickle_.End();
  }

  // What a free says is whose memory it is: the stack that allocated it.
  uint32_t StackOf(const TorchEvent& event) const {
    return event.stack != 0 || event.row == kNoRow ? event.stack : trace_.rows.stack[event.row];
  }

  uint64_t AddressOf(const TorchEvent& event) const {
    if (event.action != TorchEvent::kOutOfMemory) return event.address;
    return DeviceFree(trace_.failed[event.index]);
  }

  // As the last sample before the failure has it; 0 where none was taken.
  uint64_t DeviceFree(const analysis::FailedAllocation& failed) const {
    uint64_t free = 0;
    for (const analysis::DeviceSample& sample : trace_.samples) {
      if (sample.t_ns > failed.t_ns) break;
      if (sample.device != failed.device) continue;
      free = sample.total_bytes - std::min(sample.used_bytes, sample.total_bytes);
    }
    return free;
  }

  const Trace& trace_;
  PickleWriter& pickle_;
  Fields fields_;
  TorchFrameWriter& frames_;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const Trace& trace, const StackFrames& frames_of, const TorchSelection& selection,
                 std::ostream& out)
      : trace_(trace),
        selection_(selection),
        feed_(trace),
        pickle_(out),
        fields_(pickle_),
        frames_(frames_of, pickle_),
        ignored_failures_(trace.failed.size()) {}

  TorchSnapshotSummary Write() {
    pickle_.BeginDict();
    pickle_.String("device_traces");
    pickle_.BeginList();
    const std::vector<bool> devices = Devices();
    for (size_t device = 0; device < devices.size(); ++device) {
      pickle_.BeginList();
      if (devices[device]) WriteDevice(static_cast<int32_t>(device));
      pickle_.End();
    }
    pickle_.End();
    pickle_.String("segments");
    pickle_.BeginList();
    for (const auto& [device, at_end] : at_end_) {
      for (const TorchSegment& segment : at_end) WriteSegment(device, segment);
    }
    pickle_.End();
    pickle_.String("allocator_settings");
    WriteSettings();
    pickle_.String("external_annotations");
    pickle_.BeginList();
    pickle_.End();
    pickle_.End();
    pickle_.Finish();
    CountLeftOut();
    return summary_;
  }

 private:
  // By number: whether it has a trace. One at least, as readers expect.
  std::vector<bool> Devices() const {
    std::vector<bool> devices(1);
    const auto note = [&](int32_t device) {
      if (device < 0 || device >= kMaxDevices) return;
      if (selection_.device && *selection_.device != device) return;
      if (devices.size() <= static_cast<size_t>(device)) devices.resize(device + 1);
      devices[device] = true;
    };
    for (int32_t device : trace_.rows.device) note(device);
    for (const auto& failed : trace_.failed) note(failed.device);
    return devices;
  }

  void WriteDevice(int32_t device) {
    TorchPlan plan = PlanTorchTrace(trace_, feed_, device, selection_, ignored_failures_);
    TraceWriter writer(trace_, selection_.window, plan, pickle_, frames_);
    TorchModel model(trace_, device, TorchModel::Mode::kTell, plan.facts, writer);
    model.IgnoreFailures(&ignored_failures_);
    RunTorchModel(feed_, selection_.window, model);
    at_end_.emplace_back(device, model.Segments());
    summary_.devices.push_back({device, writer.told(), plan.events, plan.rows_left,
                                plan.largest_left, writer.first_t_ns()});
    summary_.events += writer.told();
    const TorchModelCounts& counts = model.counts();
    summary_.counts.made_up += counts.made_up;
    summary_.counts.left_out += counts.left_out;
    summary_.counts.moved += counts.moved;
    summary_.counts.tries += counts.tries;
  }

  void WriteSegment(int32_t device, const TorchSegment& segment) {
    uint64_t allocated = 0, active = 0;
    for (const TorchBlock& block : segment.blocks) {
      if (block.row == kNoRow) continue;
      active += block.size;
      if (!block.pending) allocated += block.size;
    }
    pickle_.BeginDict();
    fields_.Int("device", device);
    fields_.Unsigned("address", segment.address);
    fields_.Unsigned("total_size", segment.size);
    fields_.Unsigned("allocated_size", allocated);
    fields_.Unsigned("active_size", active);
    fields_.Unsigned("requested_size", active);
    fields_.Unsigned("stream", segment.stream);
    fields_.Text("segment_type", segment.small ? "small" : "large");
    fields_.Pool("segment_pool_id", segment.pool);
    fields_.Bool("is_expandable", segment.expandable);
    pickle_.String("frames");
    frames_.Write(segment.stack, 0);
    pickle_.String("blocks");
    pickle_.BeginList();
    for (const TorchBlock& block : segment.blocks) WriteBlock(block);
    pickle_.End();
    pickle_.End();
    ++summary_.segments;
  }

  void WriteBlock(const TorchBlock& block) {
    const bool active = block.row != kNoRow;
    pickle_.BeginDict();
    fields_.Unsigned("address", block.address);
    fields_.Unsigned("size", block.size);
    fields_.Unsigned("requested_size", active ? block.size : 0);
    fields_.Text("state", !active         ? "inactive"
                          : block.pending ? "active_pending_free"
                                          : "active_allocated");
    pickle_.String("frames");
    frames_.Write(active ? trace_.rows.stack[block.row] : 0, 0);
    pickle_.End();
    summary_.blocks += active ? 1 : 0;
  }

  void WriteSettings() {
    pickle_.BeginDict();
    pickle_.End();
  }

  void CountLeftOut() {
    const Step last = trace_.last_step();
    absl::flat_hash_map<RowId, uint64_t> mapped;
    for (const Mapping& mapping : trace_.mappings) {
      if (mapping.physical != kNoRow && mapping.HeldAfter(last))
        mapped[mapping.physical] += mapping.size;
    }
    for (RowId row : analysis::HeldAfter(trace_, last)) {
      const uint64_t size = trace_.rows.size[row];
      if (trace_.rows.device[row] == kHostDevice) {
        summary_.host_bytes_left_out += size;
      } else if (trace_.rows.memory[row] == VMM &&
                 (trace_.rows.flags[row] & analysis::kRowHandle) != 0) {
        summary_.unmapped_bytes_left_out += size - std::min(size, mapped[row]);
      }
    }
  }

  const Trace& trace_;
  const TorchSelection& selection_;
  const TorchFeed feed_;
  PickleWriter pickle_;
  Fields fields_;
  TorchFrameWriter frames_;
  std::vector<bool> ignored_failures_;
  std::vector<std::pair<int32_t, std::vector<TorchSegment>>> at_end_;
  TorchSnapshotSummary summary_;
};

}  // namespace

TorchSnapshotSummary WriteTorchSnapshot(const Trace& trace, const StackFrames& frames_of,
                                        const TorchSelection& selection, std::ostream& out) {
  return SnapshotWriter(trace, frames_of, selection, out).Write();
}

}  // namespace gmt::interop
