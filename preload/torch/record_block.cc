#include "preload/torch/record_block.h"

#include "preload/base/clock.h"
#include "preload/base/scope.h"
#include "preload/base/thread_state.h"
#include "preload/process/write_guard.h"
#include "preload/record/record_event.h"
#include "preload/record/record_stack.h"
#include "preload/torch/caching_allocator.h"
#include "preload/torch/record_role.h"

namespace gmt::preload {
namespace {

using session::Kind;
using session::Memory;
using session::Space;

[[gnu::noinline, gnu::cold]] void SeeFirstBlock(Process* p) {
  p->torch.has_blocks.store(true, std::memory_order_relaxed);
  p->map.control().facts[session::kPytorchSource].store(p->map.texts().Intern("on"),
                                                        std::memory_order_release);
}

// Returns nullptr if the block is not to be recorded. If the driver's heap is not recorded, this
// may be the first recorded GPU call.
Process* Wanted(TorchDevice device) {
  if (!device.is_cuda() || Process::Skips(session::kPytorchHeap)) return nullptr;
  Process* p = Process::StartRecording();
  return p != nullptr && p->Records(Memory::kBlock) ? p : nullptr;
}

void SeeBlock(Process* p, const void* caller) {
  if (!p->torch.has_blocks.load(std::memory_order_relaxed)) [[unlikely]]
    SeeFirstBlock(p);
  CachingAllocator::LearnFrom(caller);
}

// Returns the stack of the forward pass to which memory of this thread belongs, if the thread is
// running a backward pass.
uint32_t ForwardStack(const Process& p) {
  const Scope* scope = thread_state.scope;
  while (scope != nullptr && scope->node == nullptr) scope = scope->outer;
  return scope == nullptr ? 0 : p.torch.forward.StackOf(scope->node);
}

session::Record NewRecord(Process* p, Kind kind, uint64_t size, const TorchTotals& totals,
                          TorchDevice device) {
  session::Record r;
  r.kind = kind;
  r.space = Space::kBlock;
  r.memory = Memory::kBlock;
  r.device = static_cast<uint8_t>(device.index);
  r.thread = ThreadId(p->identity);
  r.size = size;
  r.total_allocated = totals.allocated;
  r.total_reserved = totals.reserved;
  return r;
}

// Assigns the layout of the tensor that this thread is creating, if any, to its first block. If the
// allocation fails, the layout is not used for a later block.
void TakeTensor(Process* p, session::Record* r) {
  TorchThread* t = p->torch.threads.IfThere();
  if (t == nullptr) return;
  r->layout = t->tensor_layout;
  t->tensor_layout = 0;
  t->tensor_block = r->value;
}

void AddOrigin(Process* p, const void* caller, session::Record* r) {
  CachingAllocator::CurrentStream(r->device, caller, &r->stream);
  r->stack = RecordStack(p);
  r->forward_stack = ForwardStack(*p);
  r->time_ns = NowNs();
}

}  // namespace

void RecordBlock(uint64_t address, int64_t size, const TorchTotals& totals, TorchDevice device,
                 const void* caller) {
  const KeepErrno keep;
  const WriteGuard p(Wanted(device));
  if (p == nullptr) return;
  SeeBlock(p, caller);
  p->ring.PrepareToReserve();
  p->live.Prepare(Space::kBlock, address);
  if (size >= 0) {
    session::Record r = NewRecord(p, Kind::kAlloc, static_cast<uint64_t>(size), totals, device);
    r.value = address;
    AddOrigin(p, caller, &r);
    TakeTensor(p, &r);
    return CommitAcquisition(p, r);
  }
  session::Record r =
      NewRecord(p, Kind::kFree, uint64_t{0} - static_cast<uint64_t>(size), totals, device);
  r.value = address;
  if (TorchThread* t = p->torch.threads.IfThere(); t != nullptr) t->freed_block = address;
  if (p->options.free_stacks) r.stack = RecordStack(p);
  r.time_ns = NowNs();
  p->frees_during_query.Note(r.space, r.value);
  const session::Words words = session::Pack(r);
  const session::RingWriter::Reservation reservation = p->ring.Reserve();
  p->live.Erase(r.space, r.value);
  p->ring.Commit(reservation, words);
}

void RecordOutOfMemory(int64_t size, const TorchTotals& totals, TorchDevice device,
                       const void* caller) {
  const KeepErrno keep;
  const WriteGuard p(Wanted(device));
  if (p == nullptr) return;
  SeeBlock(p, caller);
  session::Record r = NewRecord(p, Kind::kAllocFailed, static_cast<uint64_t>(size), totals, device);
  AddOrigin(p, caller, &r);
  TakeTensor(p, &r);
  CommitAlone(p, r);
}

}  // namespace gmt::preload
