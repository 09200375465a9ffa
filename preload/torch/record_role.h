// preload/torch/record_role.h
//
// What PyTorch's own calls say of its tensors becomes roles of their memory (session::Role): they
// stand in the live table, and each change of them is an event.
//
//   parameter   TensorImpl::set_requires_grad(true), AccumulateGrad's constructor, set_data
//   saved       SavedVariable's constructor, to reset_data
//   gradient    what AccumulateGrad::apply is given or takes, if it is still there when its node has
//               been evaluated: what is added to an earlier gradient is gone by then
//
// A parameter stays one; nodes that save it are not recorded. Memory that is saved already does not
// become a parameter: reentrant checkpointing makes leaves of a segment's inputs.
//
// `t`: the calling thread's. `tensor`: a TensorImpl that is alive, or nullptr. Tensors without memory on
// a device, and memory that is not live in the session, have no roles.
//
// Thread safety: all functions from any thread, without a lock.

#ifndef GMT_PRELOAD_TORCH_RECORD_ROLE_H_
#define GMT_PRELOAD_TORCH_RECORD_ROLE_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

void RecordParameter(Process* p, const void* tensor);
// A leaf of a graph: a backward pass gives it a gradient.
void RecordLeaf(Process* p, const void* tensor);

// `saved`: the SavedVariable that was just made for `tensor`, which holds it unless the program packs
// what is saved into something else (torch.autograd.graph.saved_tensors_hooks).
// `by_python`: by a function that Python code defines, whose node lets go of it without a word.
void RecordSaved(Process* p, TorchThread* t, const void* tensor, const void* saved,
                 bool by_python);
// The memory that a SavedVariable holds is no longer saved by it. `address`: of SavedMemory() before that.
// Memory that is freed with it has no roles any more, and needs no event.
uint64_t SavedMemory(const Process& p, const void* saved);
void RecordReleased(Process* p, TorchThread* t, uint64_t address);
// The node keeps nothing any more.
void RecordNodeReleased(Process* p, const void* node);

// What may become a gradient in the node that this thread evaluates.
void ExpectGradient(const Process& p, TorchThread* t, const void* tensor);
void ExpectGradientAt(TorchThread* t, uint64_t address);
// The node has been evaluated.
void RecordGradients(Process* p, TorchThread* t);

// A node of the autograd graph is being made on this thread. What it saves before it has an output is
// recorded when it has one, for only then its class is known.
void BeginNode(Process* p, TorchThread* t, uint32_t stack);
// It has an output.
void NameNode(Process* p, TorchThread* t, const void* node);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_RECORD_ROLE_H_
