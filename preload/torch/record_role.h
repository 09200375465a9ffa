// preload/torch/record_role.h
//
// Records the roles of memory (session::Role) that PyTorch's own calls reveal about its tensors.
// Roles are kept in the live table, and each change is an event.
//
//   parameter   TensorImpl::set_requires_grad(true), AccumulateGrad's constructor, set_data
//   saved       from SavedVariable's constructor to reset_data
//   gradient    what a leaf has as its gradient when AccumulateGrad::apply has stored it
//
// A parameter stays one; nodes that save it are not recorded. Memory that is already saved does not
// become a parameter, because reentrant checkpointing makes leaves of a segment's inputs.
//
// `t`: the calling thread's. `tensor`: a live TensorImpl, or nullptr. Tensors without memory on a
// device, and memory that is not live in the session, have no roles.
//
// Thread safety: all functions may be called from any thread; lock-free.

#ifndef GMT_PRELOAD_TORCH_RECORD_ROLE_H_
#define GMT_PRELOAD_TORCH_RECORD_ROLE_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

void RecordParameter(Process* p, const void* tensor);
// Records a leaf of a graph: backward passes give it a gradient.
void RecordLeaf(Process* p, const void* tensor);

// `saved`: the SavedVariable just created for `tensor`. It holds the tensor unless the program
// packs saved tensors into something else (torch.autograd.graph.saved_tensors_hooks). `by_python`:
// saved by a function defined in Python, whose node releases it without a hooked call.
void RecordSaved(Process* p, TorchThread* t, const void* tensor, const void* saved, bool by_python);
// Returns the address of the memory that a SavedVariable holds; 0 if it holds none. The session is
// not used. RecordReleased() then records that this memory is no longer saved by it; `address` is
// the result of SavedMemory() from before the release. Memory that was freed with it has no roles
// any more and needs no event.
inline uint64_t SavedMemory(const Process& p, const void* saved) {
  return p.torch.tensors.AddressOf(reinterpret_cast<const void*>(WordAt(saved, 0)));
}
void RecordReleased(Process* p, TorchThread* t, uint64_t address);
// Records that the node holds nothing any more.
void RecordNodeReleased(Process* p, const void* node);

void RecordGradient(Process* p, const void* tensor);

// A node of the autograd graph is being created on this thread. What it saves before it has an
// output is recorded when it gets one, because only then is its class known.
void BeginNode(Process* p, TorchThread* t, uint32_t stack);
// Records what the thread's node, TorchThread::node, has saved so far. nullptr: its class stays
// unknown.
void RecordSaves(Process* p, TorchThread* t);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_RECORD_ROLE_H_
