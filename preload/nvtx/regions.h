// preload/nvtx/regions.h
//
// Regions of NVTX's memory extension in the session: its live table knows each by its address, with
// its size, its name and where it was registered.
//
// A region that gets another size or name ends and begins anew, at one moment.
//
// Thread safety: as CommitAcquisition (preload/record/record_event.h).

#ifndef GMT_PRELOAD_NVTX_REGIONS_H_
#define GMT_PRELOAD_NVTX_REGIONS_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

// `name`: id of a text; 0: none. Nothing, where the driver does not know the memory.
void BeginRegion(Process* p, uint64_t address, uint64_t size, uint32_t name);
void ResizeRegion(Process* p, uint64_t address, uint64_t size);
void NameRegion(Process* p, uint64_t address, uint32_t name);
// Nothing, where there is none at that address.
void EndRegion(Process* p, uint64_t address);

// Looks through all that is live: a heap's end is rare.
template <typename Chosen>
void EndRegionsWhere(Process* p, Chosen chosen) {
  p->live.Scan([&](session::Space space, uint64_t address, const session::LiveValue&) {
    if (space == session::Space::kRegion && chosen(address)) EndRegion(p, address);
  });
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_REGIONS_H_
