// Shared by all parts of the simulated CUPTI: whether it is available, its connection to the
// driver, its clock and its lock.
//
// Like the real one, it is not part of libcuda: it finds libcuda.so.1 by dlopen at the first call
// that needs it and accesses everything through an export table.
#ifndef TESTS_SIMCUDA_CUPTI_SESSION_H_
#define TESTS_SIMCUDA_CUPTI_SESSION_H_

#include <cuda.h>
#include <cupti.h>

#include <mutex>

#include "tests/simcuda/settings.h"
#include "tests/simcuda/tools.h"

// The version that cuptiGetVersion reports, which determines the sizes of records: 130001 of CUPTI
// 13.0 or 24 of 12.6.
#ifndef SIMCUDA_CUPTI_VERSION
#define SIMCUDA_CUPTI_VERSION 130001
#endif

namespace sim {

const Settings& CuptiSettings();

// Returns why a call cannot be served, or CUPTI_SUCCESS. `needs_driver` is false for the few calls
// that the real CUPTI serves without a driver.
CUptiResult Refusal(bool needs_driver = true);

// REQUIRES: Refusal() returned CUPTI_SUCCESS.
const ToolTable& Driver();

// Guards the subscribers and what is enabled. Never held while a function of the client runs.
std::mutex& CuptiMutex();

// Attaches to the driver if there is a subscriber or an enabled activity, and detaches otherwise.
// Called after each change of what is enabled. Returns false if another tool is attached. REQUIRES:
// CuptiMutex() is held.
bool UpdateAttachment();

bool AnySubscriber();  // REQUIRES: CuptiMutex() is held.
bool AnyActivity();    // REQUIRES: CuptiMutex() is held.
// Returns whether a callback of any function of the runtime or the driver is enabled. REQUIRES:
// CuptiMutex() is held.
bool AnyCallCallback();

// CUPTI's clock: CLOCK_REALTIME unless the client has set its own.
uint64_t Timestamp();
void SetClock(CUpti_TimestampCallbackFunc function);

// The simulator's clock and CUPTI's at one moment, for converting times between them. Related times
// are converted with the same moment: the clocks are read one after the other, so two moments
// differ by some nanoseconds.
class ClockMoment {
 public:
  ClockMoment();
  uint64_t Timestamp(uint64_t simulator_ns) const;

 private:
  uint64_t simulator_;
  uint64_t client_;
  double rate_ = 1;
};

// Both receive the driver's notices.
void Callback(const Notice& notice);
void Record(const Notice& notice);

// Drop everything, for cuptiFinalize.
void ForgetSubscribers();  // REQUIRES: CuptiMutex() is held.
void ForgetActivities();   // REQUIRES: CuptiMutex() is held.

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_SESSION_H_
