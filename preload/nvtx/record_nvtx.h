// preload/nvtx/record_nvtx.h
//
// What NVTX is told becomes events. None of them has a stack: they come often, and have a name.
//
// A name that finds no room in the session (kNvtxNames, kNvtxNameBytes) is left out of its event and
// counted.
//
// Thread safety: all functions from any thread. No lock, no allocation, no system call but for what
// is seen for the first time.

#ifndef GMT_PRELOAD_NVTX_RECORD_NVTX_H_
#define GMT_PRELOAD_NVTX_RECORD_NVTX_H_

#include <stdint.h>

#include <string_view>

#include "preload/nvtx/labels.h"
#include "preload/nvtx/message.h"
#include "preload/nvtx/push_stacks.h"
#include "preload/nvtx/tables.h"
#include "preload/process/process.h"
#include "preload/process/writing.h"

namespace gmt::preload {

// Distinct names of NVTX in one session, a quarter of its table, and their bytes.
inline constexpr uint32_t kNvtxNames = 8192;
inline constexpr uint32_t kNvtxNameBytes = 512 << 10;

// nullptr where NVTX is not recorded now. Two or three loads.
inline Writing IfRecordingNvtx() {
  return Writing(Process::Skips(session::kNvtxHeap) ? nullptr : Process::IfRecording());
}

// Ids of texts in the session; 0: none, or no room.
uint32_t TextId(Process* p, std::string_view text);
uint32_t TextId(Process* p, NvtxName* name);
uint32_t TextId(Process* p, const NvtxMessage& message);

void RecordNvtxMark(Process* p, NvtxName* domain, const NvtxMessage& message);
// Returns the range's number.
uint64_t BeginNvtxRange(Process* p, NvtxName* domain, uint32_t name, uint32_t color);
void EndNvtxRange(Process* p, NvtxName* domain, uint64_t range);

// Has the session know the ranges that this thread pushed before there was one.
void TellPushed(Process* p, PushStack* stack);

void RecordLabel(Process* p, Labelled what, uint64_t number, uint32_t name);
// Those that were kept while there was no session.
void TellLabels(Process* p);

// Tells of a heap, once in a session.
void RecordHeap(Process* p, NvtxHeap* heap);
void RecordEndOfHeap(Process* p, const NvtxHeap& heap);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_RECORD_NVTX_H_
