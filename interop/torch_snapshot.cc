#include "interop/torch_snapshot.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analysis/frames.h"
#include "analysis/replay.h"
#include "interop/pickle_writer.h"
#include "interop/torch_layout.h"

namespace gmt::interop {
namespace {

using analysis::kDriverHeap;
using analysis::kHostDevice;
using analysis::kHostHeap;
using analysis::kNoRow;
using analysis::Mapping;
using analysis::RowId;
using analysis::Rows;
using analysis::Step;
using analysis::Trace;

constexpr uint64_t kSmallSegmentBytes =
    2 << 20;  // PyTorch's own segments for small blocks have this size

// Stacks as lists of frame dicts, each list and each frame written once.
class FrameWriter {
 public:
  FrameWriter(const StackFrames& frames_of, PickleWriter& pickle)
      : frames_of_(frames_of), pickle_(pickle) {}

  void Write(uint32_t stack) {
    const auto known = lists_.find(stack);
    if (known != lists_.end()) return pickle_.Recall(known->second);
    pickle_.BeginList();
    lists_[stack] = pickle_.Remember();
    for (const analysis::FrameText& frame : frames_of_(stack)) WriteFrame(frame);
    pickle_.End();
  }

 private:
  void WriteFrame(const analysis::FrameText& frame) {
    const std::string name = frame.Name();
    const std::string& file = frame.file.empty() ? frame.module : frame.file;
    const std::string key = absl::StrCat(name, "\n", file, "\n", frame.line);
    const auto known = frames_.find(key);
    if (known != frames_.end()) return pickle_.Recall(known->second);
    pickle_.BeginDict();
    frames_[key] = pickle_.Remember();
    pickle_.String("name");
    pickle_.String(name);
    pickle_.String("filename");
    pickle_.String(file);
    pickle_.String("line");
    pickle_.Int(frame.line);
    pickle_.End();
  }

  const StackFrames& frames_of_;
  PickleWriter& pickle_;
  absl::flat_hash_map<uint32_t, PickleWriter::Memo> lists_;
  absl::flat_hash_map<std::string, PickleWriter::Memo> frames_;
};

// What changed at one step, in the order in which readers must see it.
struct Changes {
  std::vector<uint32_t> unmapped, mapped,
      passed_by;  // mappings; passed_by came and went between two steps
  std::vector<const analysis::FailedAllocation*> failed;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const Trace& trace, const StackFrames& frames_of, std::ostream& out)
      : trace_(trace), pickle_(out), frames_(frames_of, pickle_) {}

  TorchSnapshotSummary Write() {
    GatherChanges();
    pickle_.BeginDict();
    pickle_.String("segments");
    WriteSegments();
    pickle_.String("device_traces");
    pickle_.BeginList();
    for (int32_t device = 0; device < DeviceCount(); ++device) WriteTrace(device);
    pickle_.End();
    pickle_.String("allocator_settings");
    pickle_.BeginDict();
    pickle_.End();
    pickle_.String("external_annotations");
    pickle_.BeginList();
    pickle_.End();
    pickle_.End();
    pickle_.Finish();
    CountLeftOut();
    return summary_;
  }

 private:
  void Key(const char* key, int64_t value) {
    pickle_.String(key);
    pickle_.Int(value);
  }
  void Address(const char* key, uint64_t value) {
    pickle_.String(key);
    pickle_.Unsigned(value);
  }
  void Text(const char* key, const char* value) {
    pickle_.String(key);
    pickle_.String(value);
  }

  int32_t DeviceCount() const {
    int32_t count = 1;
    for (int32_t device : trace_.rows.device) count = std::max(count, device + 1);
    for (const auto& failed : trace_.failed) count = std::max(count, failed.device + 1);
    return count;
  }
  bool HoldsBlocks(RowId row) const {
    return (trace_.rows.flags[row] & analysis::kRowHoldsBlocks) != 0;
  }

  // ---- State ------------------------------------------------------------------------------------

  void WriteSegments() {
    pickle_.BeginList();
    for (const TorchSegment& segment : SegmentsAfter(trace_, trace_.last_step())) {
      WriteSegment(segment);
      ++summary_.segments;
    }
    pickle_.End();
  }

  void WriteSegment(const TorchSegment& segment) {
    uint64_t allocated = 0;
    for (const TorchBlock& block : segment.blocks)
      allocated += block.row == kNoRow ? 0 : block.size;
    pickle_.BeginDict();
    Key("device", segment.device);
    Address("address", segment.address);
    Address("total_size", segment.size);
    Address("allocated_size", allocated);
    Address("active_size", allocated);
    Address("requested_size", allocated);
    Address("stream", trace_.rows.stream[segment.row]);
    Text("segment_type", segment.size <= kSmallSegmentBytes ? "small" : "large");
    pickle_.String("segment_pool_id");
    pickle_.IntPair(0, 0);
    pickle_.String("is_expandable");
    pickle_.Bool(segment.expandable);
    WriteFrames(segment.row);
    pickle_.String("blocks");
    pickle_.BeginList();
    for (const TorchBlock& block : segment.blocks) WriteBlock(block);
    pickle_.End();
    pickle_.End();
  }

  void WriteBlock(const TorchBlock& block) {
    const bool active = block.row != kNoRow;
    pickle_.BeginDict();
    Address("address", block.address);
    Address("size", block.size);
    Address("requested_size", active ? block.size : 0);
    Text("state", active ? "active_allocated" : "inactive");
    WriteFrames(block.row);
    pickle_.End();
    summary_.blocks += active ? 1 : 0;
  }

  void WriteFrames(RowId row) {
    pickle_.String("frames");
    frames_.Write(row == kNoRow ? 0 : trace_.rows.stack[row]);
  }

  // ---- History ----------------------------------------------------------------------------------

  void GatherChanges() {
    for (uint32_t i = 0; i < trace_.mappings.size(); ++i) {
      const Mapping& mapping = trace_.mappings[i];
      if (mapping.physical == kNoRow) continue;
      if (mapping.birth == mapping.death) {
        changes_[mapping.birth].passed_by.push_back(i);
        continue;
      }
      changes_[mapping.birth].mapped.push_back(i);
      if (mapping.death != analysis::kNever) changes_[mapping.death].unmapped.push_back(i);
    }
    for (const auto& failed : trace_.failed) changes_[failed.step].failed.push_back(&failed);
  }

  void WriteTrace(int32_t device) {
    pickle_.BeginList();
    auto change = changes_.begin();
    const auto write_changes = [&](Step step) {
      if (change == changes_.end() || change->first != step) return;
      WriteChanges(change->second, device, trace_.TimeOf(step));
      ++change;
    };
    write_changes(0);
    for (Step step = 1; step <= trace_.last_step(); ++step) {
      const Trace::StepRecord& record = trace_.steps[step - 1];
      if (record.row != kNoRow && trace_.rows.device[record.row] == device) WriteStep(record);
      write_changes(step);
    }
    pickle_.End();
  }

  void WriteChanges(const Changes& changes, int32_t device, int64_t t_ns) {
    const auto write = [&](uint32_t index, bool ends) {
      const Mapping& mapping = trace_.mappings[index];
      if (trace_.rows.device[mapping.physical] == device) WriteMapping(mapping, ends, t_ns);
    };
    for (uint32_t index : changes.unmapped) write(index, true);
    for (uint32_t index : changes.passed_by) {
      write(index, false);
      write(index, true);
    }
    for (uint32_t index : changes.mapped) write(index, false);
    for (const analysis::FailedAllocation* failed : changes.failed) {
      if (failed->device == device) WriteOutOfMemory(*failed);
    }
  }

  void WriteStep(const Trace::StepRecord& record) {
    const Rows& rows = trace_.rows;
    const RowId row = record.row;
    if (rows.size[row] == 0 || !IsPlace(trace_, row)) return;
    const Range range{rows.address[row], rows.size[row], row, record.t_ns};
    if (rows.heap[row] > kHostHeap) {
      const bool own_segment = (rows.flags[row] & analysis::kRowUnbacked) != 0;
      record.is_death ? WriteEnd(range, true, own_segment) : WriteBegin(range, true, own_segment);
    } else {
      const bool is_block = !HoldsBlocks(row);
      record.is_death ? WriteEnd(range, is_block, true) : WriteBegin(range, is_block, true);
    }
  }

  void WriteMapping(const Mapping& mapping, bool ends, int64_t t_ns) {
    const Range range{mapping.address, mapping.size, mapping.physical, t_ns};
    if (HoldsBlocks(mapping.physical)) return Event(ends ? "segment_unmap" : "segment_map", range);
    ends ? WriteEnd(range, true, true) : WriteBegin(range, true, true);
  }

  struct Range {
    uint64_t address, size;
    RowId row;
    int64_t t_ns;
  };
  void WriteBegin(const Range& range, bool block, bool segment) {
    if (segment) Event("segment_alloc", range);
    if (block) Event("alloc", range);
  }
  void WriteEnd(const Range& range, bool block, bool segment) {
    if (block) {
      Event("free_requested", range);
      Event("free_completed", range);
    }
    if (segment) Event("segment_free", range);
  }

  void Event(const char* action, const Range& range) {
    pickle_.BeginDict();
    Text("action", action);
    Address("addr", range.address);
    WriteEventTail(range.size, trace_.rows.stream[range.row], trace_.rows.stack[range.row],
                   range.t_ns);
  }

  void WriteOutOfMemory(const analysis::FailedAllocation& failed) {
    pickle_.BeginDict();
    Text("action", "oom");
    Address("device_free", DeviceFree(failed));
    WriteEventTail(failed.size, failed.stream, failed.stack, failed.t_ns);
  }

  void WriteEventTail(uint64_t size, uint64_t stream, uint32_t stack, int64_t t_ns) {
    Address("size", size);
    Address("stream", stream);
    Key("time_us", (trace_.start_unix_ns + t_ns) / 1000);
    if (stack != 0) {
      pickle_.String("frames");
      frames_.Write(stack);
    }
    pickle_.End();
    ++summary_.events;
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
      } else if (!IsPlace(trace_, row)) {
        summary_.unmapped_bytes_left_out += size - std::min(size, mapped[row]);
      }
    }
  }

  const Trace& trace_;
  PickleWriter pickle_;
  FrameWriter frames_;
  std::map<Step, Changes> changes_;
  TorchSnapshotSummary summary_;
};

}  // namespace

TorchSnapshotSummary WriteTorchSnapshot(const Trace& trace, const StackFrames& frames_of,
                                        std::ostream& out) {
  return SnapshotWriter(trace, frames_of, out).Write();
}

}  // namespace gmt::interop
