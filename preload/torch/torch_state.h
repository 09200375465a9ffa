// preload/torch/torch_state.h
//
// TorchState: what is known of PyTorch in this process. Part of Process (preload/process.h): zero
// bytes are a process in which nothing of it has been seen.
//
// Thread safety: all members from any thread.

#ifndef GMT_PRELOAD_TORCH_TORCH_STATE_H_
#define GMT_PRELOAD_TORCH_TORCH_STATE_H_

#include "preload/torch/forward_stacks.h"
#include "preload/torch/open_ranges.h"

namespace gmt::preload {

struct TorchState {
  // What belongs to the recording before. How nodes are laid out stays known.
  void Forget() {
    has_blocks.store(false, std::memory_order_relaxed);
    forward.Forget();
    open_ranges.Forget();
  }

  std::atomic<bool> has_blocks;  // its caching allocator has reported one
  ForwardStacks forward;
  OpenRanges open_ranges;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_TORCH_STATE_H_
