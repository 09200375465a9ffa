// TraceBuilder (analysis/trace/trace_builder.h): events that are not memory - marks, ranges,
// samples, snapshots, gaps.

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/trace/captures.h"
#include "analysis/trace/trace_builder.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {

void TraceBuilder::OnNote(const format::Event& event, const format::EventBatch& batch) {
  switch (event.kind) {
    case EVENT_RECORD:
      if ((event.flags & format::kCalledByAllocator) != 0) {
        waits_.OnRecord(event.thread, event.value, event.object, event.stream, Now(event.t_ns));
      }
      return;
    case SYNC:
      if (event.has(format::kHasObject) && !Failed(event)) {
        waits_.OnDone(event.object, (event.flags & format::kCalledByAllocator) != 0,
                      Now(event.t_ns));
      }
      return;
    case MARK:
      return OnMark(event);
    case RANGE_BEGIN:
      return OnRangeBegin(event);
    case RANGE_END:
      return OnRangeEnd(event);
    case ALLOCATOR_ACTION:
      return OnAllocatorAction(event);
    case GRAPH_ACTION:
      return OnGraphAction(event);
    case SAMPLE:
      if (event.detail < batch.samples.size()) OnSample(event, batch.samples[event.detail]);
      return;
    case SNAPSHOT_TAKEN:
      if (event.detail < batch.snapshots.size()) {
        OnSnapshotTaken(batch.snapshots[event.detail].name(), event.t_ns);
      }
      return;
    case GAP:
      ++trace_.unknowns.gaps;
      trace_.gaps.push_back({"", trace_.last_step(), event.t_ns});
      if (event.detail < batch.gaps.size()) {
        trace_.unknowns.events_missing += batch.gaps[event.detail].events();
      }
      return;
    default:
      return NoteOutside(event);
  }
}

void TraceBuilder::OnMark(const format::Event& event) {
  Mark mark;
  mark.name = definitions_.string(event.name);
  if (event.has(format::kHasIndex)) mark.index = event.index;
  mark.step = trace_.last_step();
  mark.t_ns = event.t_ns;
  mark.thread = event.thread;
  mark.stack = event.stack;
  AddSideEvent(SideEvent::kMark, trace_.marks.size(), event.t_ns);
  trace_.marks.push_back(std::move(mark));
}

void TraceBuilder::OnAllocatorAction(const format::Event& event) {
  RecordedAction action;
  action.action = event.action;
  action.name = event.name;
  if (event.has(format::kHasDevice)) action.device = static_cast<int32_t>(event.device);
  action.heap = HeapOf(event);
  action.stream = event.stream;
  action.object = event.object;
  action.value = event.value;
  action.stack = event.stack;
  action.thread = event.thread;
  action.step = trace_.last_step();
  action.t_ns = event.t_ns;
  AddSideEvent(SideEvent::kAction, trace_.actions.size(), event.t_ns);
  trace_.actions.push_back(action);
}

void TraceBuilder::OnGraphAction(const format::Event& event) {
  if (!event.has(format::kHasStream)) return;
  const std::string_view action = definitions_.string(event.action);
  if (action == "begin_capture" && !Failed(event)) {
    Capture capture;
    capture.stream = event.stream;
    capture.thread = event.thread;
    capture.begin = trace_.last_step();
    capture.begin_t_ns = event.t_ns;
    trace_.captures.push_back(capture);
  } else if (action == "end_capture") {  // this ends an invalidated capture, too, but fails
    std::vector<Capture>& captures = trace_.captures;
    const size_t oldest = captures.size() - std::min(captures.size(), kCapturesAtOnce);
    for (size_t i = captures.size(); i > oldest; --i) {
      Capture& capture = captures[i - 1];
      if (capture.stream != event.stream || capture.end != kNever) continue;
      capture.end = trace_.last_step();
      capture.end_t_ns = event.t_ns;
      return;
    }
  }
}

void TraceBuilder::OnRangeBegin(const format::Event& event) {
  const auto index = static_cast<uint32_t>(trace_.ranges.size());
  Range range;
  range.name = definitions_.string(event.name);
  range.begin = trace_.last_step();
  range.begin_t_ns = event.t_ns;
  range.thread = event.thread;
  range.stack = event.stack;
  range.text = event.text;
  range.domain = event.domain;
  if (event.has(format::kHasDevice)) range.device = static_cast<int32_t>(event.device);
  trace_.ranges.push_back(std::move(range));
  AddSideEvent(SideEvent::kRangeBegin, index, event.t_ns);
  if (event.has(format::kHasRange)) {
    open_ranges_[event.range] = index;
  } else {
    nested_ranges_[event.thread].push_back(index);
  }
}

// Returns the range that an event ends, or a new one if its beginning was not seen.
uint32_t TraceBuilder::EndedRange(const format::Event& event) {
  if (event.has(format::kHasRange)) {
    if (const auto open = open_ranges_.extract(event.range)) return open.mapped();
  } else if (auto& nested = nested_ranges_[event.thread]; !nested.empty()) {
    const uint32_t index = nested.back();
    nested.pop_back();
    return index;
  }
  Range& range = trace_.ranges.emplace_back();
  range.name = definitions_.string(event.name);
  range.thread = event.thread;
  if (event.has(format::kHasDevice)) range.device = static_cast<int32_t>(event.device);
  return static_cast<uint32_t>(trace_.ranges.size() - 1);
}

void TraceBuilder::OnRangeEnd(const format::Event& event) {
  const uint32_t index = EndedRange(event);
  trace_.ranges[index].end = trace_.last_step();
  trace_.ranges[index].end_t_ns = event.t_ns;
  AddSideEvent(SideEvent::kRangeEnd, index, event.t_ns);
}

void TraceBuilder::OnSample(const format::Event& event, const Sample& sample) {
  const int32_t device = static_cast<int32_t>(sample.has_device() ? sample.device() : event.device);
  DeviceSample known;
  known.step = trace_.last_step();
  known.t_ns = event.t_ns;
  known.device = device;
  known.used_bytes = sample.used_bytes();
  known.total_bytes = sample.total_bytes();
  known.source = sample.source();
  if (sample.has_reserved_bytes()) known.reserved_bytes = sample.reserved_bytes();
  uint64_t others = 0;
  for (const Sample::ProcessUse& process : sample.processes()) {
    DeviceSample::Process& listed = known.processes.emplace_back();
    listed.pid = process.pid();
    listed.name = process.name();
    if (process.has_bytes()) listed.bytes = process.bytes();
    if (process.pid() != trace_.pid) {
      others += process.bytes();
    } else if (process.has_bytes()) {
      known.process_bytes = process.bytes();
    }
  }
  if (known.process_bytes) known.others_bytes = others;
  if (sample.has_free_bytes()) {
    known.free_bytes = sample.free_bytes();
  } else if (sample.has_total_bytes() && sample.total_bytes() >= sample.used_bytes()) {
    known.free_bytes = sample.total_bytes() - sample.used_bytes();
  }
  if (known.free_bytes.has_value()) driver_free_[device] = *known.free_bytes;
  AddSideEvent(SideEvent::kSample, trace_.samples.size(), event.t_ns);
  trace_.samples.push_back(std::move(known));
}

void TraceBuilder::OnSnapshotTaken(const std::string& name, int64_t t_ns) {
  const auto unplaced = unplaced_snapshots_.find(name);
  if (unplaced != unplaced_snapshots_.end()) {
    AddSideEvent(SideEvent::kSnapshot, unplaced->second, t_ns);
    unplaced_snapshots_.erase(unplaced);
    return;
  }
  AddSideEvent(SideEvent::kSnapshot, trace_.snapshots.size(), t_ns);
  trace_.snapshots.push_back({name, trace_.last_step(), t_ns});
}

void TraceBuilder::NoteInstant(const std::string& name, int64_t t_ns) {
  for (const NamedInstant& known : trace_.snapshots) {
    if (known.name == name) return;
  }
  unplaced_snapshots_[name] = static_cast<uint32_t>(trace_.snapshots.size());
  trace_.snapshots.push_back({name, trace_.last_step(), t_ns});
}

}  // namespace gmt::analysis
