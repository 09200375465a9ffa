// RuntimeCall: a runtime call in progress, as reported to a tool (tools.h). The runtime accesses
// the tools' part of the driver through cuGetExportTable, like the real one.
#ifndef TESTS_SIMCUDA_RUNTIME_CALL_H_
#define TESTS_SIMCUDA_RUNTIME_CALL_H_

#include "tests/simcuda/runtime/cudart_api.h"
#include "tests/simcuda/tools.h"

namespace sim {

class RuntimeCall {
 public:
  explicit RuntimeCall(const char* name, const void* arguments = nullptr);
  ~RuntimeCall();
  RuntimeCall(const RuntimeCall&) = delete;
  RuntimeCall& operator=(const RuntimeCall&) = delete;

  cudaError_t Finish(cudaError_t result);

 private:
  RuntimeScope scope_;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_RUNTIME_CALL_H_
