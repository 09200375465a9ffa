// analysis/leaks/leak_outlook.h
//
// Predicts when a device will be full.
//
//   total |--outside--|------ most held in a cycle ------|---- room ----|
//
// What an allocator has cached counts as room: a leak fills the cache before it takes more.
// `outside` (contexts, other processes) is what the device reported as used and is not recorded.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_OUTLOOK_H_
#define GMT_ANALYSIS_LEAKS_LEAK_OUTLOOK_H_

#include <cstdint>
#include <optional>

#include "analysis/leaks/leak_report.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Bytes until `device` is full; nullopt if its size is unknown.
std::optional<uint64_t> RoomOn(const Trace& trace, int32_t device, uint64_t most_held);

// Sets the suspect's estimated times until the device is full.
void SetOutlook(uint64_t room, int64_t period_ns, LeakSuspect& suspect);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_OUTLOOK_H_
