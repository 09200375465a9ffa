// preload/nvtx/state/nvtx_state.h
//
// NvtxState: a session's NVTX state. Part of Process (preload/process/process.h); all-zero bytes:
// the session has received nothing from NVTX.
//
// Thread safety: all members may be used from any thread.

#ifndef GMT_PRELOAD_NVTX_STATE_NVTX_STATE_H_
#define GMT_PRELOAD_NVTX_STATE_NVTX_STATE_H_

#include <stdint.h>

#include <atomic>

#include "preload/nvtx/state/handle_map.h"

namespace gmt::preload {

struct NvtxState {
  // REQUIRES: no thread is using it.
  void Forget() {
    names.store(0, std::memory_order_relaxed);
    name_bytes.store(0, std::memory_order_relaxed);
    open_ranges.Forget();
  }

  // Number and total bytes of the names that NVTX has added to the session's text table. The table
  // is shared with Python: a loop that makes a new name each time must not fill it.
  std::atomic<uint32_t> names, name_bytes;
  // Numbers of the ranges that were started and have not ended, by the program's ids.
  HandleMap<1024> open_ranges;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_STATE_NVTX_STATE_H_
