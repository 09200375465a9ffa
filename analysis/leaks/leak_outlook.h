// analysis/leaks/leak_outlook.h
//
// How long until a device is full.
//
//   total |--outside--|------ most held in a cycle ------|---- room ----|
//
// What an allocator has cached is room: a leak fills the cache before it takes more. What is outside
// (contexts, other processes) is what the device said was used and is not recorded.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_OUTLOOK_H_
#define GMT_ANALYSIS_LEAKS_LEAK_OUTLOOK_H_

#include <cstdint>
#include <optional>

#include "analysis/leaks/leaks.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Bytes until `device` is full; nothing where nobody says how big it is.
std::optional<uint64_t> RoomOn(const Trace& trace, int32_t device, uint64_t most_held);

// Sets the suspect's times until the device is full.
void SetOutlook(uint64_t room, int64_t period_ns, LeakSuspect& suspect);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_OUTLOOK_H_
