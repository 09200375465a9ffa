// The simulator's clock: CLOCK_MONOTONIC, or with SIMCUDA_CLOCK=virtual a clock that runs ahead of it
// by what the host would have had to wait for the device.
//
// Thread safety: all functions may be called from any thread.
#ifndef TESTS_SIMCUDA_CLOCK_H_
#define TESTS_SIMCUDA_CLOCK_H_

#include <cstdint>

namespace sim {

// Nanoseconds.
uint64_t Now();

// Returns when the clock has reached `time`: asleep until then, or at once with the clock set
// forward.
void SleepUntil(uint64_t time);
void SkipTo(uint64_t time);

}  // namespace sim

#endif  // TESTS_SIMCUDA_CLOCK_H_
