// preload/torch/state/torch_state.h
//
// TorchState: what is known about PyTorch in this process. Part of Process
// (preload/process/process.h); all-zero bytes: nothing of PyTorch has been seen.
//
// Thread safety: all members may be used from any thread.

#ifndef GMT_PRELOAD_TORCH_STATE_TORCH_STATE_H_
#define GMT_PRELOAD_TORCH_STATE_TORCH_STATE_H_

#include "preload/torch/state/forward_stacks.h"
#include "preload/torch/state/library_range.h"
#include "preload/torch/state/node_classes.h"
#include "preload/torch/state/node_saves.h"
#include "preload/torch/state/open_ranges.h"
#include "preload/torch/state/tensor_memory.h"
#include "preload/torch/state/torch_thread.h"

namespace gmt::preload {

struct TorchState {
  // Forgets what belongs to the previous recording. The layouts of nodes and tensors stay known.
  void Forget() {
    has_blocks.store(false, std::memory_order_relaxed);
    forward.Forget();
    open_ranges.Forget();
    threads.Forget();
    node_classes.Forget();
    node_saves.Forget();
    keeping_graphs.store(0, std::memory_order_relaxed);
  }

  std::atomic<bool> has_blocks;  // its caching allocator has reported a block
  ForwardStacks forward;
  OpenRanges open_ranges;
  TensorMemory tensors;
  TorchThreads threads;
  KnownLayoutsPool layouts;
  NodeClasses node_classes;
  LibraryRange autograd;  // the library of PyTorch's built-in nodes, libtorch_cpu
  NodeSaves node_saves;
  // Number of backward passes in progress that keep the graph (retain_graph).
  std::atomic<uint32_t> keeping_graphs;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TORCH_STATE_H_
