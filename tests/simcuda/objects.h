// What the driver's opaque handles point to. CUDA declares the tags, the simulator defines them, so
// no handle is ever cast. The runtime's handles (cudaStream_t, cudaEvent_t, ...) are the same
// types.
#ifndef TESTS_SIMCUDA_OBJECTS_H_
#define TESTS_SIMCUDA_OBJECTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simcuda/cuda_api.h"

struct CUctx_st {
  int device = 0;
  bool primary = false;
  bool active = false;  // a primary context is active between its first retain and its last release
  int retained = 0;     // primary contexts only
  unsigned int flags = 0;
};

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned int flags = 0;
  int priority = 0;
  CUgraph capture = nullptr;  // where this stream's work goes while it is capturing
};

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned int flags = 0;
  bool recorded = false;
  uint64_t position = 0;  // launches before the record: finished when they are
  uint64_t recorded_ns = 0;
  CUgraph capture = nullptr;  // recorded inside this capture
};

struct CUgraphNode_st {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
};

struct CUgraph_st {
  uint64_t id = 0;                // capture sequence number, as cuStreamGetCaptureInfo reports it
  CUstream origin = nullptr;      // the stream whose EndCapture ends the capture
  std::vector<CUstream> streams;  // all that take part in the capture
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  uint64_t launches = 0;  // kernels that one launch of the graph stands for
};

struct CUfunc_st {
  CUmodule module = nullptr;
  std::string name;
};

struct CUkern_st {
  CUfunc_st function;
};

struct CUmod_st {
  int device = 0;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
  std::map<std::string, uint64_t> globals;  // name -> address
};

struct CUlib_st {
  CUmod_st module;
  std::map<std::string, std::unique_ptr<CUkern_st>> kernels;
};

#endif  // TESTS_SIMCUDA_OBJECTS_H_
