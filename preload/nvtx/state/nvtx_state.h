// preload/nvtx/state/nvtx_state.h
//
// NvtxState: what a session keeps of NVTX. Part of Process (preload/process/process.h): zero bytes are a
// session that has heard nothing of it.
//
// Thread safety: all members from any thread.

#ifndef GMT_PRELOAD_NVTX_STATE_NVTX_STATE_H_
#define GMT_PRELOAD_NVTX_STATE_NVTX_STATE_H_

#include <stdint.h>

#include <atomic>

#include "preload/nvtx/state/handle_map.h"

namespace gmt::preload {

struct NvtxState {
  // REQUIRES: nobody uses it.
  void Forget() {
    names.store(0, std::memory_order_relaxed);
    name_bytes.store(0, std::memory_order_relaxed);
    open_ranges.Forget();
  }

  // Names that NVTX has brought into the session's table of texts, and their bytes. The table is
  // Python's too: a loop that makes a new name each time must not fill it.
  std::atomic<uint32_t> names, name_bytes;
  // Numbers of the ranges that were started and not ended, by the id that the program has.
  HandleMap<1024> open_ranges;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_STATE_NVTX_STATE_H_
