// ApiCall: a driver call in progress, as reported to an attached tool (tools.h).
//
// Call() and MemoryCall() of simulator.h create one. A function whose arguments a tool may read
// creates its own around them; the inner one then only delivers notices.
//
// Thread safety: an ApiCall belongs to its thread. Post() is for function bodies that hold the
// simulator's lock; posted notices are delivered after the call has released it.
#ifndef TESTS_SIMCUDA_API_CALL_H_
#define TESTS_SIMCUDA_API_CALL_H_

#include "tests/simcuda/cuda_api.h"
#include "tests/simcuda/tools.h"

namespace sim {

class ApiCall {
 public:
  explicit ApiCall(const char* name, const void* arguments = nullptr);
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;

  // Delivers the posted notices and keeps the result for the exit notice. Returns `result`.
  // REQUIRES: the simulator's lock is not held.
  CUresult Finish(CUresult result);

 private:
  friend void DeliverNow(Notice notice);
  Notice Make(NoticeKind kind);

  bool open_ = false;
  const char* name_ = nullptr;
  const void* arguments_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
  uint32_t correlation_ = 0;
  uint32_t caused_ = 0;  // the correlation id of what this call causes
  uint64_t scratch_[2] = {};
};

// Returns whether a tool is attached and this thread is inside a call that is reported to it.
bool IsReported();

// Keeps a notice until the call has released the simulator's lock. Fills in the ids of its context
// and stream. Does nothing without a tool.
void Post(Notice notice);

// Delivers a notice at once. REQUIRES: the simulator's lock is not held.
void DeliverNow(Notice notice);

extern const ToolTable kToolTable;

}  // namespace sim

#endif  // TESTS_SIMCUDA_API_CALL_H_
