// The client's buffers, and the thread that returns full ones.
//
// A record goes into the buffer of the thread that caused it (or into one shared buffer), which is
// requested from the client on that thread. Device work that has not ended is written at once
// without its times, which are filled in later. A buffer with such a record is returned only by a
// forced flush.
//
// Thread safety: all functions may be called from any thread; no lock is held while a function of
// the client runs.
#ifndef TESTS_SIMCUDA_CUPTI_BUFFERS_H_
#define TESTS_SIMCUDA_CUPTI_BUFFERS_H_

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace sim {

// Times of a record that are filled in when the simulator's clock reaches `end_ns`.
struct LaterTimes {
  uint32_t start_at = 0;  // offsets in the record
  uint32_t end_at = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete);
bool HasBufferCallbacks();

// Selects one buffer per thread (the default) or one for all.
void SetBufferPerThread(bool per_thread);

// `later` may be null. If the client provides no buffer, the record is dropped and counted.
void Append(const void* record, size_t size, const LaterTimes* later);

// Returns every buffer with records to the client; without `forced`, only those that are complete.
void Flush(bool forced);

// Calls Flush(false) periodically on the worker's thread. 0: never.
void SetFlushPeriod(uint32_t milliseconds);

void StartWorker();
// Ends the worker and drops all buffers without returning them to the client.
void EndBuffers();

// Returns the number of records dropped since the last call.
uint64_t TakeDropped();

// Called by Append() after a thread waited for a buffer, with the begin and end of the wait on
// CUPTI's clock. May append a record itself.
void OnBufferRequested(uint64_t start, uint64_t end);

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_BUFFERS_H_
