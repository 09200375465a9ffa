// What all parts of the simulated CUPTI share: whether it is willing, its tie to the driver, its
// clock and its lock.
//
// As the real one, it has no part in libcuda: it finds libcuda.so.1 by dlopen at the first call that
// needs it and reaches everything through an export table.
#ifndef TESTS_SIMCUDA_CUPTI_SESSION_H_
#define TESTS_SIMCUDA_CUPTI_SESSION_H_

#include <cuda.h>
#include <cupti.h>

#include <mutex>

#include "tests/simcuda/settings.h"
#include "tests/simcuda/tools.h"

// What cuptiGetVersion tells, and by which the records' sizes go: 130001 of CUPTI 13.0 or 24 of 12.6.
#ifndef SIMCUDA_CUPTI_VERSION
#define SIMCUDA_CUPTI_VERSION 130001
#endif

namespace sim {

const Settings& CuptiSettings();

// Why a call cannot be served; CUPTI_SUCCESS when it can be. `needs_driver` is false for the few
// calls that the real CUPTI answers where there is no driver.
CUptiResult Refusal(bool needs_driver = true);

// REQUIRES: Refusal() was CUPTI_SUCCESS.
const ToolTable& Driver();

// Guards subscribers and what is enabled. Never held while a function of the client runs.
std::mutex& CuptiMutex();

// Attaches to the driver when there is a subscriber or an enabled activity, and detaches when there
// is neither; after each change of what is enabled. False when another tool is attached. REQUIRES:
// CuptiMutex() is held.
bool UpdateAttachment();

bool AnySubscriber();  // REQUIRES: CuptiMutex() is held.
bool AnyActivity();    // REQUIRES: CuptiMutex() is held.
// Whether a callback of any function of the runtime or the driver is enabled. REQUIRES: CuptiMutex()
// is held.
bool AnyCallCallback();

// CUPTI's clock: CLOCK_REALTIME unless the client brought its own.
uint64_t Timestamp();
void SetClock(CUpti_TimestampCallbackFunc function);

// The simulator's clock and CUPTI's at one moment, by which times of the one become times of the
// other. Times that belong together are converted by the same moment: the clocks are read one after
// the other, so two moments differ by some nanoseconds.
class ClockMoment {
 public:
  ClockMoment();
  uint64_t Timestamp(uint64_t simulator_ns) const;

 private:
  uint64_t simulator_;
  uint64_t client_;
  double rate_ = 1;
};

// The driver's notices go to both.
void Callback(const Notice& notice);
void Record(const Notice& notice);

// Ends all of it, for cuptiFinalize.
void ForgetSubscribers();  // REQUIRES: CuptiMutex() is held.
void ForgetActivities();   // REQUIRES: CuptiMutex() is held.

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_SESSION_H_
