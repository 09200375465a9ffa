#include "interop/torch/torch_snapshot.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "analysis/examination/replay.h"
#include "analysis/whatif/allocator_settings.h"
#include "interop/event_log/event_log_fields.h"
#include "interop/pickle/pickle_writer.h"
#include "interop/torch/torch_annotations.h"
#include "interop/torch/torch_settings.h"

namespace gmt::interop {
namespace {

using analysis::kHostDevice;
using analysis::kNoRow;
using analysis::Mapping;
using analysis::RowId;
using analysis::Rows;
using analysis::Step;
using analysis::Trace;

// Traces are in a list by device number. Larger numbers are not devices.
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
    case TorchEvent::kOther:
      break;
  }
  return "other";
}

// Writes the fields of a dict.
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
  // PyTorch's ID of a pool has two parts, one of which is 0: a << 32 | b.
  void Pool(const char* key, uint64_t pool) {
    pickle_.String(key);
    pickle_.IntPair(static_cast<int64_t>(pool >> 32), static_cast<int64_t>(pool & UINT32_MAX));
  }

 private:
  PickleWriter& pickle_;
};

bool IsInCachingAllocator(const format::Definitions& definitions, uint32_t stack) {
  for (uint32_t frame : definitions.StackFrames(stack)) {
    const std::string_view path = definitions.module(definitions.frame(frame).module).path;
    if (path.substr(path.rfind('/') + 1).starts_with("libc10_cuda.so")) return true;
  }
  return false;
}

// Returns the driver calls (by index of Trace::failed) that PyTorch's allocator retried, or gave up
// with its own OOM.
std::vector<bool> AllocatorTries(const Trace& trace, const format::Definitions& definitions) {
  std::vector<bool> tries(trace.failed.size());
  const auto pytorch = std::find(trace.heaps.begin(), trace.heaps.end(), "pytorch");
  if (pytorch == trace.heaps.end()) return tries;
  for (size_t i = 0; i < trace.failed.size(); ++i) {
    const analysis::FailedAllocation& failed = trace.failed[i];
    tries[i] = failed.heap == analysis::kDriverHeap &&
               (failed.stack == 0 || IsInCachingAllocator(definitions, failed.stack));
  }
  return tries;
}

// What all devices of a snapshot have in common.
struct Source {
  const Trace& trace;
  const format::Definitions& definitions;
  const bool imported;
  bool states_pools = false;  // whether blocks have pools
  absl::flat_hash_map<RowId, uint32_t> driver_free_stacks;

  Source(const Trace& t, const format::Definitions& d)
      : trace(t), definitions(d), imported(IsImportedSnapshot(t)) {
    for (RowId row = 0; row < trace.rows.count() && !states_pools; ++row) {
      states_pools = trace.rows.IsBlock(row) && trace.rows.Pool(row).has_value();
    }
    for (const analysis::DriverCall& call : trace.driver_calls) {
      if (call.kind == FREE && call.stack != 0 && call.row != kNoRow) {
        driver_free_stacks[call.row] = call.stack;
      }
    }
  }

  uint32_t FreeStack(RowId row) const {
    if (trace.rows.IsBlock(row)) return trace.rows.FreeStack(row);
    const auto known = driver_free_stacks.find(row);
    return known == driver_free_stacks.end() ? 0 : known->second;
  }
};

class TraceWriter : public TorchSelectedSink {
 public:
  TraceWriter(const Source& source, const analysis::Window& window, const TorchPlan& plan,
              PickleWriter& pickle, TorchFrameWriter& frames)
      : TorchSelectedSink(window, plan.skipped, plan.left),
        source_(source),
        rows_(source.trace.rows),
        pickle_(pickle),
        fields_(pickle),
        frames_(frames) {}

 private:
  void OnSelected(const TorchEvent& event) override {
    pickle_.BeginDict();
    fields_.Text("action", ActionOf(event));
    fields_.Unsigned(event.action == TorchEvent::kOutOfMemory ? "device_free" : "addr",
                     event.address);
    fields_.Unsigned("size", std::min<uint64_t>(SizeOf(event), INT64_MAX));
    fields_.Unsigned("stream", event.stream);
    fields_.Int("time_us", (source_.trace.start_unix_ns + event.t_ns) / 1000);
    if (event.row != kNoRow) {
      WriteOfRow(event);
    } else {
      WriteFrames(event.stack, 0);
      WriteName(event);
    }
    pickle_.End();
  }

  void WriteOfRow(const TorchEvent& event) {
    const RowId row = event.row;
    const bool is_free = event.action == TorchEvent::kFreeRequested ||
                         event.action == TorchEvent::kFreeCompleted ||
                         event.action == TorchEvent::kSegmentFree;
    uint32_t stack = event.stack;
    if (stack == 0 && is_free) stack = source_.FreeStack(row);
    uint32_t forward_stack = 0;
    // As in PyTorch, a free without its own stack has that of the allocation.
    if (stack == 0 && !source_.imported) stack = rows_.stack[row];
    if (stack == rows_.stack[row]) forward_stack = rows_.forward_stack[row];
    WriteFrames(stack, forward_stack);
    WriteText("compile_context", rows_.Scope(row));
    WriteMetadata(event);
    if (source_.states_pools) {
      if (const auto pool = rows_.Pool(row)) fields_.Pool("pool_id", *pool);
    }
  }

  void WriteFrames(uint32_t stack, uint32_t forward_stack) {
    if (stack != 0) {
      pickle_.String("frames");
      // An imported trace is written as it was.
      frames_.Write(stack, source_.imported ? 0 : forward_stack);
    }
    if (forward_stack != 0) {
      pickle_.String("forward_frames");
      frames_.WriteForward(forward_stack);
    }
  }

  // Writes the program's label, or else what PyTorch reported about the tensor.
  void WriteMetadata(const TorchEvent& event) {
    const uint32_t name = rows_.Name(event.row);
    if (name != 0) return WriteText("user_metadata", name);
    if (event.action != TorchEvent::kAlloc || source_.imported) return;
    const std::string tensor = TensorText(event.row);
    if (!tensor.empty()) fields_.Text("user_metadata", tensor);
  }

  // Returns "float32 [8, 1024, 768] parameter saved", with all roles that it ever had.
  std::string TensorText(RowId row) const {
    std::string text;
    const auto append = [&](std::string_view word) {
      if (!text.empty() && !word.empty()) text += ' ';
      text += word;
    };
    append(source_.definitions.string(rows_.Dtype(row)));
    append(source_.definitions.string(rows_.Shape(row)));
    for (const std::string_view role : RoleNames(rows_.Roles(row))) append(role);
    return text;
  }

  void WriteText(const char* key, uint32_t id) {
    if (id != 0) fields_.Text(key, source_.definitions.string(id));
  }

  void WriteName(const TorchEvent& event) {
    if (event.action == TorchEvent::kOther) {
      WriteText("user_metadata", source_.trace.actions[event.index].name);
    } else if (event.action == TorchEvent::kSnapshot) {
      fields_.Text("user_metadata", source_.trace.snapshots[event.index].name);
    }
  }

  std::string_view ActionOf(const TorchEvent& event) const {
    if (event.action != TorchEvent::kOther) return NameOf(event.action);
    return source_.definitions.string(source_.trace.actions[event.index].action);
  }

  uint64_t SizeOf(const TorchEvent& event) const {
    if (event.row == kNoRow || IsOfSegment(event.action)) return event.size;
    return rows_.Requested(event.row).value_or(event.size);
  }

  const Source& source_;
  const Rows& rows_;
  PickleWriter& pickle_;
  Fields fields_;
  TorchFrameWriter& frames_;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const Trace& trace, const format::Definitions& definitions,
                 const StackFrames& frames_of, const TorchSelection& selection, std::ostream& out)
      : trace_(trace),
        source_(trace, definitions),
        selection_(selection),
        feed_(trace),
        pickle_(out),
        fields_(pickle_),
        frames_(frames_of, pickle_),
        ignored_failures_(AllocatorTries(trace, definitions)) {}

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
    WriteAnnotations();
    pickle_.End();
    pickle_.Finish();
    CountLeftOut();
    return summary_;
  }

 private:
  // Returns whether each device number has a trace. There is at least one device, as readers
  // expect.
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
    TraceWriter writer(source_, selection_.window, plan, pickle_, frames_);
    TorchModel model(trace_, device, TorchModel::Mode::kEmit, plan.facts, writer);
    model.IgnoreFailures(&ignored_failures_);
    RunTorchModel(feed_, selection_.window, model);
    at_end_.emplace_back(device, model.Segments());
    summary_.devices.push_back({device, writer.selected(), plan.events, plan.rows_left,
                                plan.largest_left, writer.first_t_ns()});
    summary_.events += writer.selected();
    const TorchModelCounts& counts = model.counts();
    summary_.counts.made_up += counts.made_up;
    summary_.counts.left_out += counts.left_out;
    summary_.counts.moved += counts.moved;
    summary_.counts.tries += counts.tries;
  }

  void WriteSegment(int32_t device, const TorchSegment& segment) {
    uint64_t allocated = 0, active = 0, requested = 0;
    for (const TorchBlock& block : segment.blocks) {
      if (block.row == kNoRow) continue;
      active += block.size;
      requested += RequestedOf(block);
      if (!block.pending) allocated += block.size;
    }
    pickle_.BeginDict();
    fields_.Int("device", device);
    fields_.Unsigned("address", segment.address);
    fields_.Unsigned("total_size", segment.size);
    fields_.Unsigned("allocated_size", allocated);
    fields_.Unsigned("active_size", active);
    fields_.Unsigned("requested_size", requested);
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

  uint64_t RequestedOf(const TorchBlock& block) const {
    return trace_.rows.Requested(block.row).value_or(block.size);
  }

  void WriteBlock(const TorchBlock& block) {
    const bool active = block.row != kNoRow;
    const uint32_t forward_stack = active ? trace_.rows.forward_stack[block.row] : 0;
    pickle_.BeginDict();
    fields_.Unsigned("address", block.address);
    fields_.Unsigned("size", block.size);
    fields_.Unsigned("requested_size", active ? RequestedOf(block) : 0);
    fields_.Text("state", !active         ? "inactive"
                          : block.pending ? "active_pending_free"
                                          : "active_allocated");
    pickle_.String("frames");
    frames_.Write(active ? trace_.rows.stack[block.row] : 0, source_.imported ? 0 : forward_stack);
    if (forward_stack != 0) {
      pickle_.String("forward_frames");
      frames_.WriteForward(forward_stack);
    }
    pickle_.End();
    summary_.blocks += active ? 1 : 0;
  }

  void WriteSettings() {
    if (source_.imported) return WriteStatedSettings(trace_.settings, pickle_);
    const bool has_torch =
        std::find(trace_.heaps.begin(), trace_.heaps.end(), "pytorch") != trace_.heaps.end();
    if (has_torch) {
      const auto torch = analysis::TorchVersionOf(trace_.libraries);
      const analysis::NamedText* set = analysis::AllocatorVariable(trace_.settings, torch);
      return WriteTorchSettings(ParseTorchSettings(set == nullptr ? "" : set->text, torch),
                                pickle_);
    }
    pickle_.BeginDict();
    pickle_.End();
  }

  void WriteAnnotations() {
    pickle_.BeginList();
    const int32_t device = at_end_.empty() ? 0 : at_end_.front().first;
    for (const TorchAnnotation& annotation :
         TorchAnnotations(trace_, source_.definitions, selection_, device)) {
      pickle_.BeginDict();
      fields_.Text("name", annotation.name);
      fields_.Text("stage", annotation.ends ? "END" : "START");
      fields_.Int("device", annotation.device);
      fields_.Int("time_us", (trace_.start_unix_ns + annotation.t_ns) / 1000);
      pickle_.End();
    }
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
  const Source source_;
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

TorchSnapshotSummary WriteTorchSnapshot(const Trace& trace, const format::Definitions& definitions,
                                        const StackFrames& frames_of,
                                        const TorchSelection& selection, std::ostream& out) {
  return SnapshotWriter(trace, definitions, frames_of, selection, out).Write();
}

}  // namespace gmt::interop
