// Time on the device. Every stream is a line on which work stands end to end: what is queued begins
// when its stream is free, the host asked for it and what it has to wait for is done.
//
//   stream a   [kernel    ][event][copy ]
//   stream b         [kernel]<wait>[kernel]
//
// How long work takes is made up (SIMCUDA_KERNEL_TIME, SIMCUDA_BANDWIDTH). So it is known when work is
// queued at what time it will be done, and nothing runs in the background. While both are 0 no time
// passes and nothing is kept.
//
// The legacy default stream of a context waits for all streams of the context that are not
// CU_STREAM_NON_BLOCKING, and they for it. A wait for an event and a stream-ordered allocation or free
// take no time and count all the same: what comes next stands behind what they had to wait for.
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

// How long work of this kind and size takes.
uint64_t DurationOf(const Simulator& simulator, const Notice& work);

// Puts work at the end of a stream. Of a default stream, that of `context`, which may be null.
Span Queue(Simulator& simulator, CUcontext context, CUstream stream, uint64_t duration);

// Puts a wait until `time` at the end of a stream: what is queued from now on begins then at the
// earliest. Of the legacy default stream it waits for the blocking streams too, as all work does.
void HoldBack(Simulator& simulator, CUcontext context, CUstream stream, uint64_t time);

// When what is queued so far will be done: on a stream, in a context, on a device. At least now.
uint64_t DoneOnStream(Simulator& simulator, CUcontext context, CUstream stream);
uint64_t DoneInContext(Simulator& simulator, CUcontext context);
uint64_t DoneOnDevice(Simulator& simulator, int device);

// The stream goes; its work does not.
void Retire(CUstream stream);

// The host waits until `time`, without the simulator's lock: what was looked up before may be gone
// afterwards. Returns when it began and when it ended.
Span HostWait(Simulator& simulator, uint64_t time);

// What a free does that is not ordered by a stream: the host waits until the device of the memory has
// nothing left to do, and a tool hears of it as of a synchronisation of the context. Returns when
// that was; 0 when there is no such memory.
uint64_t WaitBeforeFree(Simulator& simulator, uint64_t address);

}  // namespace sim

#endif  // TESTS_SIMCUDA_TIMELINE_H_
