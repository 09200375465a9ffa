// The simulator's clock: CLOCK_MONOTONIC, or with SIMCUDA_CLOCK=virtual a clock that is ahead of it
// by the time that the host would have waited for the device.
//
// Thread safety: all functions may be called from any thread.
#ifndef TESTS_SIMCUDA_CLOCK_H_
#define TESTS_SIMCUDA_CLOCK_H_

#include <cstdint>

namespace sim {

// Nanoseconds.
uint64_t Now();

// Both return when the clock has reached `time`: SleepUntil() sleeps, SkipTo() sets the clock
// forward.
void SleepUntil(uint64_t time);
void SkipTo(uint64_t time);

}  // namespace sim

#endif  // TESTS_SIMCUDA_CLOCK_H_
