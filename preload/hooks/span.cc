#include "preload/hooks/span.h"

#include <string.h>

#include "preload/base/clock.h"
#include "preload/record/driver_query.h"
#include "preload/record/record_stack.h"
#include "preload/torch/caching_allocator.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

uint64_t Load(const Output& output) {
  uint64_t number = 0;  // little-endian: 4 bytes are the lower half
  memcpy(&number, output.at, output.bytes);
  return number;
}

session::Record NewRecord(Process* p, Kind kind, ApiId api) {
  session::Record r;
  r.kind = kind;
  r.api = api;
  r.thread = ThreadId(p->identity);
  return r;
}

// Virtual memory management belongs to no context; its memory outlives contexts.
bool BelongsToContext(Memory memory) {
  return memory != Memory::kVmm && memory != Memory::kMulticast;
}

// Returns whether the call's meaning depends on the context: each context has its own default
// streams, and a new stream belongs to a context.
bool NeedsContext(const session::Record& r) {
  if (r.kind == Kind::kPool) return false;
  const bool of_event = r.kind == Kind::kEventRecord && r.action == Action::kDestroy;
  if (of_event || r.action == Action::kEvent) return false;
  return r.action == Action::kCreate || r.action == Action::kDevice || IsDefaultStream(r.stream);
}

// Opening memory of another process again yields the same mapping with one more reference.
bool IsOpenedAgain(Process* p, const session::Record& r) {
  return r.kind == Kind::kImport && r.space == Space::kIpc && r.memory == Memory::kIpc &&
         p->live.AddReference(r.space, r.value);
}

bool DropsReference(Process* p, const Return& what) {
  const bool counted =
      what.kind == Kind::kRelease || (what.kind == Kind::kUnimport && what.memory == Memory::kIpc);
  return counted && p->live.DropReference(what.space, what.value);
}

// Returns the size of device memory that existed before a client attached. It cannot be queried
// after the free.
uint64_t SizeFromBefore(Process* p, const session::Record& r) {
  session::LiveValue live;
  if (!p->attach_gate.is_open || r.kind != Kind::kFree || r.space != Space::kDevice ||
      p->live.Find(r.space, r.value, &live)) {
    return 0;
  }
  return AllocationSize(r.value);
}

}  // namespace

Process* AcquisitionSpan::Wanted(const Acquisition& what) {
  const KeepErrno keep;
  Process* p = Process::StartRecording();
  return p != nullptr && p->Records(what.memory) ? p : nullptr;
}

AcquisitionSpan::AcquisitionSpan(Process* process, ApiId api, const Acquisition& what)
    : process_(process), what_(what), nesting_(what.kind) {
  const KeepErrno keep;
  record_ = NewRecord(process, what.kind, api);
  record_.space = what.space;
  record_.memory = what.memory;
  record_.size = what.size;
  record_.stream = what.stream;
  record_.device = what.device;
  record_.stack = RecordStack(process);
  begin_ns_ = record_.time_ns = NowNs();
  in_flight_ = BeginInFlight(process, record_);
}

// Fills in sizes that are known after success: from the call's results, or from the driver.
void AcquisitionSpan::Measure() {
  if (what_.size_out.at != nullptr) record_.size = Load(what_.size_out) * what_.rows;
  if (what_.measured) record_.size = AllocationSize(record_.value);
}

void AcquisitionSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  record_.time_ns = NowNs();
  record_.duration_ns = record_.time_ns - begin_ns_;
  record_.result = static_cast<uint16_t>(result);
  session::InFlightTable::End(in_flight_);
  if (BelongsToContext(what_.memory)) {
    if (result == 0 || result == kOutOfMemory) RecordContext(process_, &record_);
  } else if (what_.kind == Kind::kMap) {
    session::LiveValue physical;
    if (process_->live.Find(Space::kPhysical, what_.stream, &physical))
      record_.device = physical.device;
  }
  if (result != 0) {
    record_.kind = Kind::kAllocFailed;
    TakeTensorLayout(process_, &record_);
    return CommitAlone(process_, record_);
  }
  record_.value = what_.out.at != nullptr ? Load(what_.out) : what_.value;
  if (record_.value == 0) return;  // zero bytes were requested and granted; never freed
  if (IsOpenedAgain(process_, record_)) return;
  Measure();
  TakeTensorLayout(process_, &record_);
  CommitAcquisition(process_, record_);
}

// Programs initialize the runtime by cudaFree(nullptr): no event.
Process* ReturnSpan::Wanted(const Return& what) {
  if (what.value == 0) return nullptr;
  Process* p = Process::IfRecordingCalls();
  return p != nullptr && p->Records(what.memory) ? p : nullptr;
}

ReturnSpan::ReturnSpan(Process* process, ApiId api, const Return& what)
    : process_(process), nesting_(what.kind) {
  const KeepErrno keep;
  record_ = NewRecord(process, what.kind, api);
  record_.space = what.space;
  record_.memory = what.memory;
  record_.value = what.value;
  record_.stream = what.stream;
  dropped_ = DropsReference(process, what);
  if (dropped_) return;
  if (WantsStackOfFree(*process, what.memory)) record_.stack = RecordStack(process);
  record_.size = SizeFromBefore(process, record_);
  record_.time_ns = NowNs();
  known_ = CommitReturn(process, &record_, &live_);
  in_flight_ = BeginInFlight(process, record_);
}

void ReturnSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  if (dropped_) {
    if (result != 0) process_->live.AddReference(record_.space, record_.value);
    return;
  }
  session::InFlightTable::End(in_flight_);
  const uint64_t begin_ns = record_.time_ns;
  record_.time_ns = NowNs();
  CommitReturnDone(process_, record_, record_.time_ns - begin_ns, result,
                   known_ ? &live_ : nullptr);
}

ActivitySpan::ActivitySpan(Process* process, ApiId api, const Activity& what)
    : process_(process), what_(what), nesting_(what.kind) {
  const KeepErrno keep;
  record_ = NewRecord(process, what.kind, api);
  record_.action = what.action;
  record_.flags = what.flags;
  record_.priority = what.priority;
  record_.value = what.object;
  record_.size = what.amount;
  record_.stream = what.stream;
  if (CachingAllocator::Contains(what.caller)) {
    record_.flags |= session::kCalledByAllocator;
    record_.size = Number(what.caller);
  }
  if (what.waits) record_.stack = RecordStack(process);
  if (what.waits || what.timed) begin_ns_ = NowNs();
}

// Uses this thread's context, or the one that the call names.
void ActivitySpan::NoteContext() {
  if (record_.action != Action::kDevice || record_.value == 0)
    return RecordContext(process_, &record_);
  const auto context = process_->contexts.Find(record_.value);
  record_.context = context.number;
  record_.device = context.device;
}

void ActivitySpan::Finish(uint32_t result) {
  const KeepErrno keep;
  if (result != 0) return;
  record_.time_ns = NowNs();
  if (begin_ns_ != 0) record_.duration_ns = record_.time_ns - begin_ns_;
  if (what_.out.at != nullptr)
    (what_.kind == Kind::kStream ? record_.stream : record_.value) = Load(what_.out);
  if (NeedsContext(record_)) NoteContext();
  CommitAlone(process_, record_);
}

MeasurementSpan::MeasurementSpan(Process* process, ApiId api, const Measurement& what)
    : process_(process), what_(what) {
  const KeepErrno keep;
  record_ = NewRecord(process, Kind::kSample, api);
}

void MeasurementSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  if (result != 0) return;
  record_.time_ns = NowNs();
  record_.value = Load(what_.free);
  record_.size = Load(what_.total);
  record_.device = CurrentDevice();
  CommitAlone(process_, record_);
}

ContextStartSpan::ContextStartSpan(Process* process, ApiId api, const ContextStart& what)
    : process_(process), what_(what) {
  const KeepErrno keep;
  record_ = NewRecord(process, Kind::kContextCreate, api);
  record_.stack = RecordStack(process);
}

void ContextStartSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  if (result == 0) EnterContext(process_, Load(what_.out), what_.device, record_);
}

ReferenceSpan::ReferenceSpan(Process* process, ApiId api, const Reference& what)
    : process_(process), what_(what) {
  const KeepErrno keep;
  record_ = NewRecord(process, Kind::kImport, api);
  record_.space = Space::kPhysical;
  record_.memory = Memory::kIpc;
}

void ReferenceSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  if (result != 0) return;
  record_.value = Load(what_.out);
  if (process_->live.AddReference(Space::kPhysical, record_.value)) return;
  record_.time_ns = NowNs();
  CommitAcquisition(process_, record_);
}

}  // namespace gmt::preload
