// analysis/testing/event_script.h
//
// For tests and benchmarks: writes events like a story, one call per line, one millisecond apart.
//
//   EventScript script;
//   script.Alloc(0x1000, 512, {"load", "main"});
//   script.Free(0x1000);
//   Trace trace = script.Build();

#ifndef GMT_ANALYSIS_TESTING_EVENT_SCRIPT_H_
#define GMT_ANALYSIS_TESTING_EVENT_SCRIPT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/trace/trace_builder.h"
#include "format/definitions_builder.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {

class EventScript {
 public:
  static constexpr int64_t kStep_ns = 1'000'000;
  using Functions = std::vector<std::string>;

  uint64_t pid = 0;  // process id for the header

  // Each returns the event, which may be changed until the next one is written.
  format::Event& Alloc(uint64_t address, uint64_t size, const Functions& stack = {}) {
    return Add(ALLOC, "driver", DEVICE, address, size, stack);
  }
  format::Event& Free(uint64_t address, uint64_t size = 0) {
    return Add(FREE, "driver", DEVICE, address, size);
  }
  format::Event& FreeDone(uint64_t address, uint32_t result) {
    format::Event& event = Add(FREE_DONE, "driver", DEVICE, address, 0);
    event.present |= format::kHasResult;
    event.result = result;
    return event;
  }
  format::Event& Failed(uint64_t size, const Functions& stack = {}) {
    return Add(ALLOC_FAILED, "driver", DEVICE, 0, size, stack);
  }
  format::Event& Pinned(uint64_t address, uint64_t size, const Functions& stack = {}) {
    return Add(ALLOC, "host", PINNED, address, size, stack);
  }
  format::Event& FreePinned(uint64_t address) { return Add(FREE, "host", PINNED, address, 0); }
  format::Event& Block(uint64_t address, uint64_t size, const Functions& stack = {}) {
    return Add(ALLOC, "pytorch", BLOCK, address, size, stack);
  }
  format::Event& FreeBlock(uint64_t address) { return Add(FREE, "pytorch", BLOCK, address, 0); }
  // Sets the tensor for which `event` allocates memory.
  void Tensor(format::Event& event, const std::string& dtype, const std::string& shape) {
    event.dtype = builder_.InternString(dtype);
    event.shape = builder_.InternString(shape);
  }
  // Sets the roles that PyTorch reports for a block; `node`: the class of a node that saves it.
  format::Event& Role(uint64_t address, uint32_t roles, const std::string& node = "") {
    format::Event& event = Add(ROLE, "pytorch", BLOCK, address, 0);
    event.roles = roles;
    if (!node.empty()) event.name = builder_.InternString(node);
    return event;
  }
  format::Event& Region(uint64_t address, uint64_t size, const Functions& stack = {}) {
    return Add(ALLOC, "nvtx", REGION, address, size, stack);
  }
  format::Event& FreeRegion(uint64_t address) { return Add(FREE, "nvtx", REGION, address, 0); }
  format::Event& FreeBlockDone(uint64_t address) {
    return Add(FREE_DONE, "pytorch", BLOCK, address, 0);
  }
  format::Event& FailedBlock(uint64_t size, const Functions& stack = {}) {
    format::Event& event = Add(ALLOC_FAILED, "pytorch", BLOCK, 0, size, stack);
    event.present |= format::kHasResult;
    event.result = 2;
    return event;
  }
  // Sets the allocator's totals after `event`.
  static void Totals(format::Event& event, uint64_t allocated, uint64_t reserved) {
    event.present |= format::kHasTotals;
    event.total_allocated = allocated;
    event.total_reserved = reserved;
  }
  // The library of PyTorch's allocator records a CUDA event (from code address `site`), and later
  // observes that it has completed.
  format::Event& RecordEvent(uint64_t event, uint64_t site) {
    format::Event& record = AddActivity(EVENT_RECORD, event);
    record.present |= format::kHasValue | format::kHasFlags;
    record.value = site;
    record.flags = 1;
    return record;
  }
  format::Event& EventDone(uint64_t event) {
    format::Event& done = AddActivity(SYNC, event);
    done.present |= format::kHasFlags;
    done.flags = 1;
    done.action = builder_.InternString("event");
    return done;
  }
  // Streams, the work enqueued on them, and waits.
  format::Event& NewStream(uint64_t stream, bool blocking = false, int32_t priority = 0) {
    format::Event& event = AddStreamCall(STREAM, stream, "create");
    event.present |= format::kHasFlags | format::kHasPriority;
    event.flags = blocking ? 0u : uint32_t{format::kNonBlocking};
    event.priority = priority;
    return event;
  }
  format::Event& EndStream(uint64_t stream) { return AddStreamCall(STREAM, stream, "destroy"); }
  format::Event& NameStream(uint64_t stream, const std::string& name) {
    format::Event& event = AddStreamCall(STREAM, stream, "name");
    event.name = builder_.InternString(name);
    return event;
  }
  format::Event& Record(uint64_t event, uint64_t stream) {
    format::Event& record = AddStreamCall(EVENT_RECORD, stream);
    record.present |= format::kHasObject;
    record.object = event;
    return record;
  }
  format::Event& WaitFor(uint64_t event, uint64_t stream) {
    format::Event& wait = AddStreamCall(EVENT_WAIT, stream);
    wait.present |= format::kHasObject;
    wait.object = event;
    return wait;
  }
  format::Event& SyncStream(uint64_t stream, const Functions& stack = {}) {
    format::Event& sync = AddStreamCall(SYNC, stream, "stream");
    sync.stack = Stack(stack);
    return sync;
  }
  format::Event& SyncDevice(const Functions& stack = {}) {
    format::Event& sync = Add(SYNC, "", MEMORY_UNSPECIFIED, 0, 0, stack);
    sync.action = builder_.InternString("device");
    return sync;
  }
  format::Event& Graph(const std::string& action, uint64_t stream) {
    return AddStreamCall(GRAPH_ACTION, stream, action);
  }
  // CUPTI's reports about memory and about itself.
  format::Event& Witness(const std::string& action, uint64_t address, uint64_t size) {
    format::Event& event = Add(WITNESS, "", DEVICE, 0, 0);
    event.present |= format::kHasObject;
    event.object = address;
    event.action = builder_.InternString(action);
    if (size > 0) event.present |= format::kHasValue;
    event.value = size;
    return event;
  }
  format::Event& Source(const std::string& source, const std::string& status) {
    format::Event& event = AddNote(SOURCE_CHANGE, source);
    event.text = builder_.InternString(status);
    return event;
  }
  format::Event& Module(const std::string& action, uint64_t bytes) {
    return AddAction(MODULE_ACTION, action, bytes);
  }
  format::Event& Limit(const std::string& limit, uint64_t bytes) {
    return AddAction(LIMIT_ACTION, limit, bytes);
  }
  // cudaMallocAsync and cudaFreeAsync.
  format::Event& AllocAsync(uint64_t address, uint64_t size, uint64_t stream,
                            const Functions& stack = {}) {
    return OnStream(Add(ALLOC, "driver", POOL, address, size, stack), stream, "cudaMallocAsync");
  }
  format::Event& FreeAsync(uint64_t address, uint64_t stream) {
    return OnStream(Add(FREE, "driver", POOL, address, 0), stream, "cudaFreeAsync");
  }
  format::Event& Took(format::Event& event, uint64_t duration_ns) {
    event.present |= format::kHasDuration;
    event.duration_ns = duration_ns;
    return event;
  }
  format::Event& Api(format::Event& event, const std::string& name) {
    event.api = builder_.InternString(name);
    return event;
  }

  format::Event& Create(uint64_t handle, uint64_t size, const Functions& stack = {}) {
    return Add(CREATE, "driver", VMM, handle, size, stack);
  }
  format::Event& Release(uint64_t handle) { return Add(RELEASE, "driver", VMM, handle, 0); }
  format::Event& Reserve(uint64_t address, uint64_t size) {
    return Add(RESERVE, "driver", VMM, address, size);
  }
  format::Event& Map(uint64_t address, uint64_t size, uint64_t handle) {
    format::Event& event = Add(MAP, "driver", VMM, address, size);
    event.present |= format::kHasHandle;
    event.handle = handle;
    return event;
  }
  format::Event& Unmap(uint64_t address, uint64_t size) {
    return Add(UNMAP, "driver", VMM, address, size);
  }
  format::Event& Reset(uint32_t context) {
    format::Event& event = Add(CONTEXT_RESET, "", MEMORY_UNSPECIFIED, 0, 0);
    event.present = (event.present & ~uint64_t{format::kHasDevice}) | format::kHasContext;
    event.context = context;
    return event;
  }
  void Gap(uint64_t events) {
    Add(GAP, "", MEMORY_UNSPECIFIED, 0, 0).detail = static_cast<uint32_t>(batch_.gaps.size());
    batch_.gaps.emplace_back().set_events(events);
  }
  void SnapshotTaken(const std::string& name) {
    Add(SNAPSHOT_TAKEN, "", MEMORY_UNSPECIFIED, 0, 0).detail =
        static_cast<uint32_t>(batch_.snapshots.size());
    batch_.snapshots.emplace_back().set_name(name);
  }

  format::Event& Mark(const std::string& name, uint64_t index) {
    format::Event& event = AddNote(MARK, name);
    event.present |= format::kHasIndex;
    event.index = index;
    return event;
  }
  format::Event& Begin(const std::string& name, uint64_t range, const Functions& stack = {}) {
    format::Event& event = AddNote(RANGE_BEGIN, name);
    event.present |= format::kHasRange;
    event.range = range;
    event.stack = Stack(stack);
    return event;
  }
  format::Event& End(const std::string& name, uint64_t range) {
    format::Event& event = AddNote(RANGE_END, name);
    event.present |= format::kHasRange;
    event.range = range;
    return event;
  }
  gmt::Sample& Sample(uint64_t used, uint64_t total) {
    Add(SAMPLE, "", MEMORY_UNSPECIFIED, 0, 0).detail = static_cast<uint32_t>(batch_.samples.size());
    gmt::Sample& sample = batch_.samples.emplace_back();
    sample.set_device(0);
    sample.set_used_bytes(used);
    sample.set_total_bytes(total);
    return sample;
  }

  // Frames innermost first; Python frames with names.
  uint32_t Stack(const Functions& functions) {
    std::vector<uint32_t> frames;
    for (const std::string& function : functions) {
      format::FrameInfo frame;
      frame.function = builder_.InternString(function);
      frame.file = builder_.InternString("/src/" + function + ".py");
      frame.line = 10;
      frame.language = format::Language::kPython;
      frames.push_back(builder_.InternFrame(frame));
    }
    return builder_.InternStack(frames, 0);
  }

  format::DefinitionsBuilder& builder() { return builder_; }
  const format::EventBatch& batch() const { return batch_; }
  std::vector<format::Event>& events() { return batch_.events; }  // for changing written events

  // Definitions of everything written so far.
  const format::Definitions& definitions() {
    if (builder_.has_new()) definitions_.Add(builder_.TakeNew()).IgnoreError();
    return definitions_;
  }
  Trace Build(const std::vector<Snapshot>& snapshots = {}) {
    TraceBuilder builder(definitions());
    Header header;
    header.set_pid(pid);
    builder.OnHeader(header).IgnoreError();
    builder.OnEvents(batch_).IgnoreError();
    for (const Snapshot& snapshot : snapshots) builder.OnSnapshot(snapshot).IgnoreError();
    return std::move(builder).Build();
  }

 private:
  format::Event& AddActivity(Kind kind, uint64_t object) {
    format::Event& event = Add(kind, "", MEMORY_UNSPECIFIED, 0, 0);
    event.present |= format::kHasObject;
    event.object = object;
    return event;
  }
  format::Event& OnStream(format::Event& event, uint64_t stream, const std::string& api) {
    event.present |= format::kHasStream;
    event.stream = stream;
    return Api(event, api);
  }
  format::Event& AddAction(Kind kind, const std::string& action, uint64_t value) {
    format::Event& event = Add(kind, "", MEMORY_UNSPECIFIED, 0, 0);
    event.present |= format::kHasValue;
    event.action = builder_.InternString(action);
    event.value = value;
    return event;
  }
  format::Event& AddStreamCall(Kind kind, uint64_t stream, const std::string& action = "") {
    format::Event& event = Add(kind, "", MEMORY_UNSPECIFIED, 0, 0);
    event.present = (event.present & ~uint64_t{format::kHasAddress}) | format::kHasStream;
    event.stream = stream;
    event.action = builder_.InternString(action);
    return event;
  }
  format::Event& AddNote(Kind kind, const std::string& name) {
    format::Event& event = Add(kind, "", MEMORY_UNSPECIFIED, 0, 0);
    event.present &= ~uint64_t{format::kHasDevice | format::kHasAddress};
    event.name = builder_.InternString(name);
    return event;
  }
  format::Event& Add(Kind kind, const std::string& heap, Memory memory, uint64_t address,
                     uint64_t size, const Functions& stack = {}) {
    format::Event event;
    event.kind = kind;
    event.present = format::kHasDevice | format::kHasAddress;
    if (size > 0) event.present |= format::kHasSize;
    event.t_ns = static_cast<int64_t>(batch_.events.size() + 1) * kStep_ns;
    event.heap = builder_.InternString(heap);
    event.memory = memory;
    event.address = address;
    event.size = size;
    event.stack = Stack(stack);
    batch_.events.push_back(event);
    return batch_.events.back();
  }

  format::DefinitionsBuilder builder_;
  format::Definitions definitions_;
  format::EventBatch batch_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TESTING_EVENT_SCRIPT_H_
