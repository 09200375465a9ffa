// preload/nvtx/tables.h
//
// NvtxTables: NVTX state that is independent of any session. Mapped when a copy of NVTX first asks
// for a tool, for the life of the process. A fork child has its own copy, with what its parent had
// entered.
//
// Thread safety: all members may be used from any thread.

#ifndef GMT_PRELOAD_NVTX_TABLES_H_
#define GMT_PRELOAD_NVTX_TABLES_H_

#include <stdint.h>

#include <atomic>

#include "preload/nvtx/heaps.h"
#include "preload/nvtx/labels.h"
#include "preload/nvtx/names.h"
#include "preload/nvtx/push_stacks.h"
#include "preload/nvtx/state/handle_map.h"

namespace gmt::preload {

struct NvtxTables {
  NvtxNames names;
  // Another tool's handles, if one is called after this library: its strings and domains, and the
  // addresses of its regions.
  HandleMap<8192> strings, domains;
  HandleMap<65536> regions;
  PushStacks pushed;
  NvtxLabels labels;
  NvtxHeaps heaps;

  // Returns nullptr if no copy of NVTX has asked yet, or there was no memory.
  static NvtxTables* IfMapped() { return mapped_.load(std::memory_order_acquire); }
  static NvtxTables* Map();

  // Return nullptr if the handle is unknown. Default domain: nullptr.
  static NvtxName* StringOf(const void* handle);
  static NvtxName* DomainOf(const void* handle);

 private:
  static constinit std::atomic<NvtxTables*> mapped_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_TABLES_H_
