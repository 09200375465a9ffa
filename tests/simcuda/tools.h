// What the simulated driver reports to a tool such as the simulated CUPTI, and how the tool
// requests it.
//
//   libcudart  --runtime_enter/exit-->  libcuda  --Notice-->  libcupti
//
// A tool accesses the driver through the export table, like NVIDIA's. Only one tool can be
// attached. The driver does not depend on CUPTI, and collects nothing while no tool is attached.
//
// Notices are delivered on the thread that made the call, in the order of the call's effects and
// never under the simulator's lock, so a tool may call the driver from them; such calls cause
// notices too. Destruction is reported before it happens.
// own. What is destroyed is announced before it goes.
#ifndef TESTS_SIMCUDA_TOOLS_H_
#define TESTS_SIMCUDA_TOOLS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/simcuda/cuda_api.h"

namespace sim {

enum class NoticeKind : uint8_t {
  kInitialized,
  kApiEnter,
  kApiExit,
  kContextCreated,
  kContextDestroyStarting,
  kStreamCreated,
  kStreamDestroyStarting,
  kModuleLoaded,
  kModuleUnloadStarting,
  kGraphCreated,
  kGraphDestroyStarting,
  kGraphExecCreated,
  kGraphExecDestroyStarting,
  kStreamSynchronized,
  kContextSynchronized,
  kEventSynchronized,
  kStreamWaitsEvent,
  kEventRecorded,
  kWork,  // queued on a stream; start_ns and end_ns may lie in the future
  kMemory,
  kPool,
};

enum class WorkKind : uint8_t { kKernel, kCopy, kSet };
enum class Memory : uint8_t { kUnknown, kPageable, kPinned, kDevice, kArray, kManaged };
enum class MemoryAction : uint8_t { kAllocated, kFreed };
enum class PoolAction : uint8_t { kCreated, kDestroyed, kTrimmed };

// The state of a pool at the time of a notice. `handle` is 0 if the memory belongs to no pool.
struct PoolState {
  uint64_t handle = 0;
  bool imported = false;
  uint64_t release_threshold = 0;
  uint64_t reserved = 0;
  uint64_t used = 0;
};

struct Notice {
  NoticeKind kind = NoticeKind::kInitialized;
  // Every call has its own correlation id. Everything else has that of the call which caused it:
  // the runtime call, if the runtime called the driver.
  uint32_t correlation = 0;

  // Calls.
  bool runtime = false;
  bool inside_runtime = false;      // a driver call made by the runtime
  const char* name = nullptr;       // calls: the function; work: the kernel
  const void* arguments = nullptr;  // CUPTI's <name>_params; null if not available
  const void* result = nullptr;     // exit: the CUresult or cudaError_t
  uint64_t* scratch = nullptr;      // two words for the tool, valid from enter to exit

  // The objects involved, and their ids, which are never reused.
  CUcontext context = nullptr;
  uint32_t context_id = 0;
  int device = 0;
  CUstream stream = nullptr;
  uint32_t stream_id = 0;
  unsigned int stream_flags = 0;
  int stream_priority = 0;
  CUevent event = nullptr;
  uint32_t event_id = 0;
  uint64_t event_record = 0;  // the number of the record that was made or is waited for
  uint32_t module_id = 0;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  uint32_t graph_id = 0;
  const void* image = nullptr;
  uint64_t image_size = 0;

  // Synchronisations: the wait of the host. Work: execution on the device. On the simulator's
  // clock.
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;

  WorkKind work = WorkKind::kKernel;
  Memory from = Memory::kUnknown;  // copies
  Memory to = Memory::kUnknown;    // copies and sets, and the kind of kMemory
  int peer = -1;                   // copies between devices: the source device
  uint32_t value = 0;              // sets
  uint32_t grid[3] = {}, block[3] = {};
  uint32_t shared_memory = 0;

  MemoryAction memory_action = MemoryAction::kAllocated;
  PoolAction pool_action = PoolAction::kCreated;
  bool async = false;  // memory: stream-ordered
  uint64_t address = 0;
  uint64_t size = 0;
  PoolState pool{};
};

using NoticeFunction = void (*)(const Notice&);

// A runtime call in progress; lives on the stack of that call.
struct RuntimeScope {
  bool open = false;
  const char* name = nullptr;
  const void* arguments = nullptr;
  uint64_t scratch[2] = {};
  uint32_t correlation = 0;
  int result = 0;
};

// The part of the export table that tools and the runtime use.
struct ToolTable {
  // Returns false if another tool is attached.
  bool (*attach)(NoticeFunction function);
  void (*detach)(NoticeFunction function);
  // Selects whether calls, work, memory and events are reported, in addition to creation,
  // destruction and synchronisation. If they are not, calls have next to no overhead, like with a
  // real tool.
  void (*want_calls)(bool wanted);
  // Reports every existing context and stream to `function` as if it were created now.
  void (*replay)(NoticeFunction function);
  // The simulator's clock, which begins as CLOCK_MONOTONIC.
  uint64_t (*now)();
  // Return 0 if there is no such context or stream. A null stream is the context's default stream.
  uint32_t (*context_id)(CUcontext context);
  uint32_t (*stream_id)(CUcontext context, CUstream stream, bool per_thread);
  // Makes the tool hold `bytes` of the context's device from now on, replacing the previous amount.
  // Returns false if the device has no room.
  bool (*hold_memory)(CUcontext context, uint64_t bytes);
  // Called around every runtime call if calls are wanted. A call inside another one is not
  // reported; its result becomes that of the outer call.
  bool (*wants_calls)();
  void (*runtime_enter)(RuntimeScope* scope);
  void (*runtime_finish)(int result);
  void (*runtime_exit)(RuntimeScope* scope);
};

// The arguments of a call, laid out like the structs of CUPTI's generated_cuda_meta.h: in order,
// each aligned to its size.
class Arguments {
 public:
  template <typename... Values>
  explicit Arguments(Values... values) {
    (Append(values), ...);
  }
  const void* data() const { return bytes_; }

 private:
  template <typename Value>
  void Append(Value value) {
    used_ = (used_ + alignof(Value) - 1) / alignof(Value) * alignof(Value);
    std::memcpy(bytes_ + used_, &value, sizeof(value));
    used_ += sizeof(value);
  }

  alignas(16) unsigned char bytes_[96] = {};
  size_t used_ = 0;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_TOOLS_H_
