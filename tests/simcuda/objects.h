// The types behind the driver's opaque handles. CUDA declares the tags and the simulator defines
// them, so no handle is ever cast. The runtime's handles (cudaStream_t, cudaEvent_t, ...) are the
// same types.
#ifndef TESTS_SIMCUDA_OBJECTS_H_
#define TESTS_SIMCUDA_OBJECTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simcuda/cuda_api.h"
#include "tests/simcuda/tools.h"

namespace sim {
class Device;
}

// Ids of contexts, streams, events, modules and graphs count from 1 for each kind (streams from 13)
// and are never reused.

struct CUctx_st {
  uint32_t id = 0;  // a primary context has a new one after each reset
  int device = 0;
  bool primary = false;
  bool active = false;  // for a primary context: between its first retain and its last release
  int retained = 0;     // primary: retains minus releases; others: attaches minus detaches
  unsigned int flags = 0;
  // The context that owns memory allocated in this one: a green context shares the memory of its
  // device's primary context. Null: this context.
  CUcontext memory_context = nullptr;
  // When work queued in this context will be done (timeline.h).
  struct Times {
    uint64_t legacy = 0;
    std::map<long, uint64_t> per_thread;  // default streams, by thread
    uint64_t retired = 0;                 // of destroyed streams
    uint64_t retired_blocking = 0;        // of those that the legacy stream waits for
  } times{};
  uint64_t tool_memory = 0;  // device memory in bytes that an attached tool holds for this context
};

struct CUgreenCtx_st {
  CUctx_st context;
};

struct CUarray_st {
  CUcontext context = nullptr;
  int device = 0;
  CUDA_ARRAY3D_DESCRIPTOR_v2 descriptor{};
  uint64_t size = 0;     // bytes by the descriptor; 0 when sparse or deferred
  uint64_t address = 0;  // of the memory behind it; 0 when it has none of its own
};

struct CUmipmappedArray_st {
  CUcontext context = nullptr;
  int device = 0;
  uint64_t size = 0;     // bytes of all levels
  uint64_t address = 0;  // as in CUarray_st
  std::vector<std::unique_ptr<CUarray_st>> levels;
};

struct CUextMemory_st {
  CUcontext context = nullptr;
  int device = 0;
  uint64_t size = 0;
};

struct CUgraphicsResource_st {
  CUcontext context = nullptr;
  int device = 0;
  uint64_t size = 0;
  uint64_t address = 0;  // where it is mapped; 0 when it is not
};

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned int flags = 0;
  int priority = 0;
  uint32_t id = 0;
  uint64_t ready_ns = 0;      // when all work queued on it will be done
  CUgraph capture = nullptr;  // receives this stream's work while it is capturing
};

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned int flags = 0;
  uint32_t id = 0;
  uint64_t record = 0;  // the number of its last record, counted over all events
  bool recorded = false;
  uint64_t position = 0;      // number of launches before the record: finished when they are
  uint64_t done_ns = 0;       // when its stream reaches it
  CUgraph capture = nullptr;  // recorded inside this capture
};

// The addresses of a memory allocation node. They are taken when the node is created and kept until
// its graph and everything instantiated from it are gone. Memory is mapped to them when the graph
// runs.
struct GraphMemory {
  GraphMemory(sim::Device* device, uint64_t size);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;

  sim::Device* device;
  uint64_t size;
  uint64_t address;  // 0 when the device has no addresses left
};

struct CUgraphNode_st {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUgraph graph = nullptr;
  std::shared_ptr<GraphMemory> memory{};  // allocation nodes
  CUmemPoolProps pool{};                  // allocation nodes
  uint64_t freed = 0;                     // free nodes: the address
  sim::Notice work{};                     // all others
  CUfunction function = nullptr;          // kernels that were not captured
  // Child graphs: a copy of the graph. Conditional nodes: the bodies, and the array of them
  // returned to the program.
  std::vector<std::shared_ptr<CUgraph_st>> children{};
  std::vector<CUgraph> bodies{};
};

struct CUgraph_st {
  uint32_t number = 0;
  uint64_t id = 0;                // capture sequence number, as cuStreamGetCaptureInfo reports it
  CUstream origin = nullptr;      // the stream whose EndCapture ends the capture
  std::vector<CUstream> streams;  // all streams that take part in the capture
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  // The effects of one launch on memory, in order: allocations and frees.
  struct Step {
    std::shared_ptr<GraphMemory> memory;  // null: a free
    uint64_t freed = 0;
  };
  uint32_t number = 0;            // graphs and executables are numbered jointly
  std::vector<sim::Notice> work;  // what one launch queues
  bool auto_free = false;
  std::vector<Step> steps;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  const char* name = nullptr;  // never freed
};

struct CUkern_st {
  CUfunc_st function;
};

struct CUmod_st {
  int device = 0;
  uint32_t id = 0;
  const void* image = nullptr;
  uint64_t image_size = 0;  // 0: not known
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
  std::map<std::string, uint64_t> globals;  // name -> address
};

struct CUlib_st {
  CUmod_st module;
  std::map<std::string, std::unique_ptr<CUkern_st>> kernels;
};

#endif  // TESTS_SIMCUDA_OBJECTS_H_
