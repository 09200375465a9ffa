// preload/nvtx/record_nvtx.h
//
// Records NVTX calls as events. They have no stack, because they are frequent and have a name.
//
// A name that does not fit in the session (kNvtxNames, kNvtxNameBytes) is left out of its event and
// counted.
//
// Thread safety: all functions may be called from any thread. No lock, no allocation, and no system
// call except for what is seen for the first time.

#ifndef GMT_PRELOAD_NVTX_RECORD_NVTX_H_
#define GMT_PRELOAD_NVTX_RECORD_NVTX_H_

#include <stdint.h>

#include <string_view>

#include "preload/nvtx/labels.h"
#include "preload/nvtx/message.h"
#include "preload/nvtx/push_stacks.h"
#include "preload/nvtx/tables.h"
#include "preload/process/process.h"
#include "preload/process/write_guard.h"

namespace gmt::preload {

// Limits on the distinct NVTX names in one session (a quarter of its table) and on their bytes.
inline constexpr uint32_t kNvtxNames = 8192;
inline constexpr uint32_t kNvtxNameBytes = 512 << 10;

// Returns nullptr if NVTX is not being recorded now. Costs two or three loads.
inline WriteGuard IfRecordingNvtx() {
  return WriteGuard(Process::Skips(session::kNvtxHeap) ? nullptr : Process::IfRecording());
}

// Return ids of texts in the session; 0: none, or no room.
uint32_t TextId(Process* p, std::string_view text);
uint32_t TextId(Process* p, NvtxName* name);
uint32_t TextId(Process* p, const NvtxMessage& message);

void RecordNvtxMark(Process* p, NvtxName* domain, const NvtxMessage& message);
// Returns the range's number.
uint64_t BeginNvtxRange(Process* p, NvtxName* domain, uint32_t name, uint32_t color);
void EndNvtxRange(Process* p, NvtxName* domain, uint64_t range);

// Records the ranges that this thread pushed before there was a session.
void RecordPushedRanges(Process* p, PushStack* stack);

void RecordLabel(Process* p, Labelled what, uint64_t number, uint32_t name);
// Records the labels that were kept while there was no session.
void RecordKeptLabels(Process* p);

// Records a heap, once per session.
void RecordHeap(Process* p, NvtxHeap* heap);
void RecordEndOfHeap(Process* p, const NvtxHeap& heap);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_RECORD_NVTX_H_
