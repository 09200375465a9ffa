// preload/nvtx/regions.h
//
// Regions of NVTX's memory extension in the session: the live table has each by its address, with
// its size, its name and the stack of its registration.
//
// A region that changes its size or name ends and begins again, at one moment.
//
// Thread safety: as CommitAcquisition (preload/record/record_event.h).

#ifndef GMT_PRELOAD_NVTX_REGIONS_H_
#define GMT_PRELOAD_NVTX_REGIONS_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

// `name`: id of a text; 0: none. Does nothing if the driver does not know the memory.
void BeginRegion(Process* p, uint64_t address, uint64_t size, uint32_t name);
void ResizeRegion(Process* p, uint64_t address, uint64_t size);
void NameRegion(Process* p, uint64_t address, uint32_t name);
// Does nothing if there is no region at that address.
void EndRegion(Process* p, uint64_t address);

// Scans everything that is live, because a heap rarely ends.
template <typename Chosen>
void EndRegionsWhere(Process* p, Chosen chosen) {
  p->live.Scan([&](session::Space space, uint64_t address, const session::LiveValue&) {
    if (space == session::Space::kRegion && chosen(address)) EndRegion(p, address);
  });
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_REGIONS_H_
