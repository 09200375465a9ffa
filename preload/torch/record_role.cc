#include "preload/torch/record_role.h"

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

using session::Kind;
using session::Space;

// A block, or driver memory if PyTorch's allocator keeps no blocks.
Space SpaceOf(const Process& p) {
  return p.torch.has_blocks.load(std::memory_order_relaxed) ? Space::kBlock : Space::kDevice;
}

void RecordRole(Process* p, Space space, uint64_t address, const session::LiveTable::Roles& roles,
                uint64_t time_ns, uint32_t stack = 0, uint32_t node_class = 0) {
  session::Record r;
  r.kind = Kind::kRole;
  r.space = space;
  r.memory = roles.memory;
  r.device = roles.device;
  r.thread = ThreadId(p->identity);
  r.value = address;
  r.size = roles.after;
  r.stack = stack;
  r.stream = node_class;
  r.time_ns = time_ns;
  p->ring.Commit(p->ring.Reserve(), session::Pack(r));
}

// What is common to everything that a node saves at one time. `node`: nullptr if its class is
// unknown.
struct Save {
  const void* node;
  uint32_t stack;
  // Set when the first of them is recorded.
  uint32_t node_class = 0;
  uint64_t time_ns = 0;
};

// Records that one more node saves it. Returns false if it is a parameter, or not live.
bool AddSaver(Process* p, uint64_t address, Save* save) {
  const Space space = SpaceOf(*p);
  session::LiveTable::Roles roles;
  if (!p->live.AddSaver(space, address, &roles)) return false;
  if ((roles.after & session::kParameter) != 0) return false;
  if (save->time_ns == 0) {
    if (save->node != nullptr) save->node_class = p->torch.node_classes.NameOf(save->node, p->map);
    save->time_ns = NowNs();
  }
  RecordRole(p, space, address, roles, save->time_ns, save->stack, save->node_class);
  return true;
}

// Returns true if the memory is released before its node has an output, because the node's function
// failed.
bool ForgetSave(TorchThread* t, uint64_t address) {
  for (uint32_t i = 0; i < t->save_count; ++i) {
    if (t->saves[i] != address) continue;
    t->saves[i] = t->saves[--t->save_count];
    return true;
  }
  return false;
}

// now() returns the time.
template <typename Now>
void DropSaver(Process* p, uint64_t address, Now now) {
  const Space space = SpaceOf(*p);
  session::LiveTable::Roles roles;
  if (!p->live.DropSaver(space, address, &roles)) return;
  if (roles.after != roles.before) RecordRole(p, space, address, roles, now());
}

void AddParameter(Process* p, const void* tensor, uint32_t more) {
  const uint64_t address = p->torch.tensors.AddressOf(tensor);
  if (address == 0) return;
  const Space space = SpaceOf(*p);
  session::LiveTable::Roles roles;
  if (!p->live.AddParameter(space, address, more, &roles)) return;
  if (roles.after != roles.before) RecordRole(p, space, address, roles, NowNs());
}

}  // namespace

void RecordParameter(Process* p, const void* tensor) { AddParameter(p, tensor, 0); }

void RecordLeaf(Process* p, const void* tensor) {
  AddParameter(p, tensor, session::kExpectsGradient);
}

void RecordSaved(Process* p, TorchThread* t, const void* tensor, const void* saved,
                 bool by_python) {
  // The first word of a SavedVariable is the tensor that it holds, or one that shares its memory.
  const auto* held = reinterpret_cast<const void*>(WordAt(saved, 0));
  if (held == nullptr) return;
  const uint64_t address = p->torch.tensors.AddressOf(tensor);
  if (address == 0 || (held != tensor && p->torch.tensors.AddressOf(held) != address)) return;
  if (t->node == nullptr && t->save_count < sizeof(t->saves) / sizeof(t->saves[0])) {
    t->saves[t->save_count++] = address;
    return;
  }
  // An output is being saved; nodes created during its computation are not its node.
  const uint32_t own = t->node == nullptr ? 0 : p->torch.forward.StackOf(t->node);
  Save save = {t->node, own != 0 ? own : t->node_stack.Of(p->identity)};
  if (AddSaver(p, address, &save) && by_python) p->torch.node_saves.Add(t->node, address);
}

void RecordReleased(Process* p, TorchThread* t, uint64_t address) {
  if (!ForgetSave(t, address) && t->freed_block != address)
    DropSaver(p, address, [t] { return t->releases.Now(); });
}

void RecordNodeReleased(Process* p, const void* node) {
  p->torch.node_saves.Take(node, [p](uint64_t address) { DropSaver(p, address, NowNs); });
}

void RecordGradient(Process* p, const void* tensor) {
  const uint64_t address = p->torch.tensors.AddressOf(tensor);
  if (address == 0) return;
  const Space space = SpaceOf(*p);
  session::LiveTable::Roles roles;
  if (!p->live.AddRole(space, address, session::kGradient, &roles)) return;
  if (roles.after != roles.before) RecordRole(p, space, address, roles, NowNs());
}

void BeginNode(Process* p, TorchThread* t, uint32_t stack) {
  t->node = nullptr;
  if (t->save_count != 0) [[unlikely]]
    RecordSaves(p, t);
  t->node_stack.Set(p->identity, stack);
}

void RecordSaves(Process* p, TorchThread* t) {
  Save save = {t->node, t->node_stack.Of(p->identity)};
  for (uint32_t i = 0; i < t->save_count; ++i) AddSaver(p, t->saves[i], &save);
  t->save_count = 0;
}

}  // namespace gmt::preload
