// The client's buffers, and the thread that hands full ones back.
//
// A record goes into the buffer of the thread that caused it (or into one that all share), which is
// asked of the client on that thread. Work of the device whose end lies ahead is in the buffer at
// once, without its times; they are filled in when it has ended. A buffer with such a record in it
// comes back only from a forced flush.
//
// Thread safety: all functions may be called from any thread; none holds a lock while a function of
// the client runs.
#ifndef TESTS_SIMCUDA_CUPTI_BUFFERS_H_
#define TESTS_SIMCUDA_CUPTI_BUFFERS_H_

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace sim {

// Times of a record that are filled in when `end_ns` of the simulator's clock has come.
struct LaterTimes {
  uint32_t start_at = 0;  // offsets in the record
  uint32_t end_at = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete);
bool HasBufferCallbacks();

// One buffer for each thread, which is the default, or one for all.
void SetBufferPerThread(bool per_thread);

// `later` may be null. The record is dropped and counted when the client gives no room.
void Append(const void* record, size_t size, const LaterTimes* later);

// Hands back every buffer with records; without `forced` those alone that are complete.
void Flush(bool forced);

// Flush(false) every so often, on the worker's thread. 0: never.
void SetFlushPeriod(uint32_t milliseconds);

void StartWorker();
// Ends the worker and forgets all buffers, which their client does not get back.
void EndBuffers();

// Records dropped since the last call.
uint64_t TakeDropped();

// Append() calls it with the times, by CUPTI's clock, between which a thread waited for a buffer. It
// may append a record itself.
void OnBufferRequested(uint64_t start, uint64_t end);

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_BUFFERS_H_
