// Time on the device. Work on a stream is executed in sequence: it begins when the stream is idle,
// the host has submitted it and what it waits for is done.
//
//   stream a   [kernel    ][event][copy ]
//   stream b         [kernel]<wait>[kernel]
//
// Durations are synthetic (SIMCUDA_KERNEL_TIME, SIMCUDA_BANDWIDTH). It is therefore known when work
// is queued at what time it will be done, and nothing runs in the background. If both are 0, work
// takes no time and nothing is stored.
//
// The legacy default stream of a context waits for all streams of the context that are not
// CU_STREAM_NON_BLOCKING, and they wait for it. A wait for an event and a stream-ordered allocation
// or free take no time but count as work: what follows them begins after what they had to wait for.
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_TIMELINE_H_
#define TESTS_SIMCUDA_TIMELINE_H_

#include <cstdint>

#include "tests/simcuda/simulator.h"

namespace sim {

struct Span {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

// Returns how long work of this kind and size takes.
uint64_t DurationOf(const Simulator& simulator, const Notice& work);

// Appends work to a stream. A default stream is that of `context`, which may be null.
Span Queue(Simulator& simulator, CUcontext context, CUstream stream, uint64_t duration);

// Appends a wait until `time` to a stream: work queued from now on does not begin earlier. On the
// legacy default stream it also waits for the blocking streams, as all work does.
void HoldBack(Simulator& simulator, CUcontext context, CUstream stream, uint64_t time);

// Return when the work queued so far will be done, on a stream, in a context, on a device; not
// before now.
uint64_t DoneOnStream(Simulator& simulator, CUcontext context, CUstream stream);
uint64_t DoneInContext(Simulator& simulator, CUcontext context);
uint64_t DoneOnDevice(Simulator& simulator, int device);

// Removes a stream; its work still counts.
void Retire(CUstream stream);

// Makes the host wait until `time`, without the simulator's lock: pointers looked up before may be
// invalid afterwards. Returns the begin and end of the wait.
Span HostWait(Simulator& simulator, uint64_t time);

// The wait of a free that is not ordered by a stream: the host waits until the memory's device is
// idle, and a tool is notified as of a synchronisation of the context. Returns when that was; 0 if
// there is no such memory.
uint64_t WaitBeforeFree(Simulator& simulator, uint64_t address);

}  // namespace sim

#endif  // TESTS_SIMCUDA_TIMELINE_H_
