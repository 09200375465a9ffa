#include "preload/nvtx/regions.h"

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/record/driver_query.h"
#include "preload/record/record_event.h"
#include "preload/record/record_stack.h"

namespace gmt::preload {
namespace {

using session::Kind;
using session::Memory;
using session::Space;

session::Record NewRecord(Process* p, Kind kind, uint64_t address) {
  session::Record r;
  r.kind = kind;
  r.space = Space::kRegion;
  r.memory = Memory::kRegion;
  r.thread = ThreadId(p->identity);
  r.value = address;
  return r;
}

void Begin(Process* p, uint64_t address, uint64_t size, uint32_t name, uint8_t device) {
  session::Record r = NewRecord(p, Kind::kAlloc, address);
  r.size = size;
  r.device = device;
  r.stream = name;
  r.stack = RecordStack(p);
  r.time_ns = NowNs();
  CommitAcquisition(p, r);
}

}  // namespace

void BeginRegion(Process* p, uint64_t address, uint64_t size, uint32_t name) {
  uint8_t device;
  if (!DeviceOf(address, &device)) return;
  EndRegion(p, address);  // a region whose end was not reported
  Begin(p, address, size, name, device);
}

void ResizeRegion(Process* p, uint64_t address, uint64_t size) {
  session::LiveValue live;
  if (!p->live.Find(Space::kRegion, address, &live) || live.size == size) return;
  EndRegion(p, address);
  Begin(p, address, size, static_cast<uint32_t>(live.stream), live.device);
}

void NameRegion(Process* p, uint64_t address, uint32_t name) {
  session::LiveValue live;
  if (!p->live.Find(Space::kRegion, address, &live) || live.stream == name) return;
  EndRegion(p, address);
  Begin(p, address, live.size, name, live.device);
}

void EndRegion(Process* p, uint64_t address) {
  session::LiveValue live;
  if (!p->live.Find(Space::kRegion, address, &live)) return;
  session::Record r = NewRecord(p, Kind::kFree, address);
  if (p->options.free_stacks) r.stack = RecordStack(p);
  r.time_ns = NowNs();
  CommitReturn(p, &r, &live);
}

}  // namespace gmt::preload
