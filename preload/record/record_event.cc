#include "preload/record/record_event.h"

#include "preload/base/clock.h"
#include "preload/record/cupti_attention.h"
#include "preload/record/driver_query.h"

namespace gmt::preload {

using session::Kind;
using session::Memory;

namespace {

// Records a device once, before the first context on it. Device numbers are meaningless outside a
// process with CUDA_VISIBLE_DEVICES; names and UUIDs are not. Other threads do not wait for the one
// that queries the driver, so their calls may precede its record (docs/session.md).
void RecordDevice(Process* p, uint8_t device, const session::Record& like) {
  const uint64_t bit = uint64_t{1} << (device % 64);
  std::atomic<uint64_t>& known = p->known_devices[device / 64];
  if (device == session::kNoDevice || (known.fetch_or(bit, std::memory_order_relaxed) & bit) != 0)
    return;
  DeviceIdentity identity;
  IdentifyDevice(device, &identity);
  session::TextTable texts = p->map.texts();
  session::Record r;
  r.kind = Kind::kDevice;
  r.action = session::Action::kCreate;
  r.api = like.api;
  r.thread = like.thread;
  r.stack = like.stack;
  r.device = device;
  r.value = texts.Intern(identity.name);
  r.stream = uint64_t{texts.Intern(identity.pci_bus_id)} | uint64_t{texts.Intern(identity.uuid)}
                                                               << 32;
  r.size = identity.total_bytes;
  r.priority = static_cast<int16_t>(identity.compute_capability);
  r.time_ns = NowNs();
  CommitAlone(p, r);
}

}  // namespace

uint8_t EnterContext(Process* p, uint64_t handle, uint8_t device, const session::Record& like) {
  bool is_new;
  const uint8_t number = p->contexts.Enter(handle, device, &is_new);
  if (number == 0) p->Count(session::kContextsFull);
  RecordDevice(p, device, like);  // may have been unknown when the context was new
  if (!is_new) return number;
  CuptiMayBegin();
  session::Record r;
  r.kind = Kind::kContextCreate;
  r.api = like.api;
  r.thread = like.thread;
  r.stack = like.stack;
  r.time_ns = NowNs();
  r.value = handle;
  r.device = device;
  r.context = number;
  CommitAlone(p, r);
  return number;
}

void RecordContext(Process* p, session::Record* r) {
  const uint64_t handle = CurrentContext();
  session::ContextTable::Found context;
  if (handle != 0) context = p->contexts.Find(handle);
  if (context.device == session::kNoDevice) {
    context.device = CurrentDevice();
    if (handle != 0) context.number = EnterContext(p, handle, context.device, *r);
  }
  r->context = context.number;
  const bool host = r->memory == Memory::kPinned || r->memory == Memory::kRegistered;
  if (!host) r->device = context.device;
}

session::LiveValue ToLive(const session::Record& r, uint64_t ticket) {
  return {.ticket = ticket,
          .size = r.size,
          .stream = r.stream,
          .time_ns = r.time_ns,
          .stack = r.stack,
          .forward_stack = r.forward_stack,
          .thread = r.thread,
          .kind = r.kind,
          .memory = r.memory,
          .device = r.device,
          .context = r.context,
          .api = r.api,
          .layout = r.layout};
}

void InsertLive(Process* p, session::Space space, uint64_t value, const session::LiveValue& live) {
  switch (p->live.Insert(space, value, live)) {
    case session::LiveTable::Result::kDone:
      break;
    case session::LiveTable::Result::kFull:
      p->Count(session::kLiveFull);
      break;
    case session::LiveTable::Result::kUnrepresentable:
      p->Count(session::kUnrepresentable);
      break;
  }
}

void TakeTensorLayout(Process* p, session::Record* r) {
  if (r->space != session::Space::kDevice) return;
  TorchThread* t = p->torch.threads.IfThere();
  if (t == nullptr || t->tensor_layout == 0) return;
  t->tensor_block = r->value;
  // A caching allocator's first segment precedes its first block. It is larger than the tensor, or
  // the tensor fills it.
  const bool has_blocks = p->torch.has_blocks.load(std::memory_order_relaxed);
  if (!has_blocks && r->size == t->tensor_bytes) r->layout = t->tensor_layout;
}

void CommitAlone(Process* p, const session::Record& r) {
  const session::Words words = session::Pack(r);
  p->ring.Commit(p->ring.Reserve(), words);
}

void CommitAcquisition(Process* p, const session::Record& r) {
  const session::Words words = session::Pack(r);
  const session::RingWriter::Reservation reservation = p->ring.Reserve();
  InsertLive(p, r.space, r.value, ToLive(r, reservation.ticket));
  p->ring.Commit(reservation, words);
}

bool CommitReturn(Process* p, session::Record* r, session::LiveValue* live) {
  p->frees_during_query.Note(r->space, r->value);
  const session::RingWriter::Reservation reservation = p->ring.Reserve();
  const bool known = p->live.Erase(r->space, r->value, live);
  if (known) {
    r->size = live->size;
    r->memory = live->memory;
    r->device = live->device;
    r->context = live->context;
  }
  p->ring.Commit(reservation, session::Pack(*r));
  return known;
}

void CommitReturnDone(Process* p, session::Record r, uint64_t duration_ns, uint32_t result,
                      const session::LiveValue* live) {
  r.kind = Kind::kFreeDone;
  r.duration_ns = duration_ns;
  r.result = static_cast<uint16_t>(result);
  const session::Words words = session::Pack(r);
  const session::RingWriter::Reservation reservation = p->ring.Reserve();
  if (result != 0 && live != nullptr) {
    session::LiveValue again = *live;
    again.ticket = reservation.ticket;
    InsertLive(p, r.space, r.value, again);
  }
  p->ring.Commit(reservation, words);
}

session::InFlightSlot* BeginInFlight(Process* p, const session::Record& r) {
  session::InFlightSlot* slot = p->in_flight.Begin(r.thread, r.api, r.size, r.time_ns);
  if (slot == nullptr) {
    p->Count(session::kInFlightFull);
  } else {
    slot->stack.store(r.stack, std::memory_order_relaxed);
  }
  return slot;
}

}  // namespace gmt::preload
