// analysis/leaks/leak_state.h
//
// Saves the state of a leak search in a recording (proto/leaks.proto, LeakState).
//
// A state that was read is untrusted: enumerations are checked, numbers are used unchanged.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_STATE_H_
#define GMT_ANALYSIS_LEAKS_LEAK_STATE_H_

#include <cstdint>
#include <optional>

#include "analysis/leaks/leak_evidence.h"

namespace gmt {
class LeakBefore;
class LeakCycleInfo;
class LeakMinima;
class LeakState;
}  // namespace gmt

namespace gmt::analysis {

inline constexpr uint32_t kLeakStateVersion = 1;

gmt::LeakState StateOf(const LeakEvidence& evidence);
// Returns nullopt for other versions.
std::optional<LeakEvidence> EvidenceOf(const gmt::LeakState& state);

gmt::LeakCycleInfo InfoOf(const WatchedCycles& cycles, int64_t watched_ns);
gmt::LeakMinima MessageOf(const CycleMinima& minima);
gmt::LeakBefore MessageOf(const HeldBefore& before);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_STATE_H_
