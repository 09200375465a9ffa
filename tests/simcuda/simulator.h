// Simulator: all state behind the simulated driver, under one lock.
//
// Every driver function is one of
//   Call(__func__, group, body)                body(Simulator&) -> CUresult
//   MemoryCall(__func__, group, record, body)  body(Simulator&, Record&) -> CUresult, logged
// which wait for the latency of the group, take the lock, apply SIMCUDA_FAIL and run the body. The
// line is written under the same lock, so the order of the log is the order of the effects.
//
// In a child forked after cuInit, calls return CUDA_ERROR_NOT_INITIALIZED, like a real driver,
// without touching the lock.
#ifndef TESTS_SIMCUDA_SIMULATOR_H_
#define TESTS_SIMCUDA_SIMULATOR_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/simcuda/api_call.h"
#include "tests/simcuda/clock.h"
#include "tests/simcuda/device.h"
#include "tests/simcuda/log.h"
#include "tests/simcuda/objects.h"
#include "tests/simcuda/settings.h"

namespace sim {

enum class MemoryKind {
  kDevice,
  kManaged,
  kPool,
  kHost,
  kRegistered,
  kImported,      // cuIpcOpenMemHandle
  kImportedPool,  // cuMemPoolImportPointer
  kExternal,      // a mapped buffer of external memory
  kGraphics,      // a mapped graphics resource
  kGraph,         // memory of a graph's allocation node
};

struct Allocation {
  MemoryKind kind = MemoryKind::kDevice;
  uint64_t size = 0;  // bytes requested
  int device = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;  // kPool only
  uint64_t buffer_id = 0;       // unique for the life of the process
  // kImported only: the owning process, the address there, and the number of times it has been
  // opened.
  int owner = 0;
  uint64_t owners_address = 0;
  int opened = 0;
};

// Memory created by cuMemCreate. It exists until it is neither mapped nor referred to by a handle.
struct PhysicalMemory {
  uint64_t size = 0;
  CUmemAllocationProp properties{};
  int handles = 0;
  int mappings = 0;      // mappings, bindings and other handles that keep it alive
  bool charged = false;  // whether its bytes count in this process's budget
  bool multicast = false;
  // A handle imported in the process that exported it refers to the memory of another handle.
  CUmemGenericAllocationHandle same_as = 0;
  // Multicast objects: offset -> what is bound there.
  std::map<uint64_t, CUmemGenericAllocationHandle> bound{};
};

// A global variable of a module.
struct Global {
  uint64_t size = 0;
  int device = 0;
  uint64_t buffer_id = 0;
};

struct Mapping {
  uint64_t size = 0;
  CUmemGenericAllocationHandle handle = 0;
  uint64_t buffer_id = 0;
};

struct Reservation {
  uint64_t size = 0;
  int device = 0;
};

// Memory that contains some address, whatever created it.
struct Region {
  uint64_t base = 0;
  uint64_t size = 0;
  int device = 0;
  bool host_accessible = false;
  bool device_memory = false;              // false: host memory, pinned or registered
  const Allocation* allocation = nullptr;  // null: a mapping
  uint64_t buffer_id = 0;
};

class Simulator {
 public:
  // Returns the process's simulator, created from the environment at the first call and never
  // destroyed.
  static Simulator& Get();
  // Returns success after cuInit was called in this process.
  static CUresult Ready();

  explicit Simulator(const Settings& settings);

  CUresult Init();
  Device* device(int ordinal);
  const SharedBudget* shared() const { return shared_.get(); }
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }

  // Returns the failure that SIMCUDA_FAIL requests for this call, or success.
  CUresult InjectedFailure(const char* call);

  // Finds the memory that contains `address`; returns false if there is none.
  bool Find(uint64_t address, Region* region) const;
  // Like Find() for the region that contains all of [address, address + size). Adjacent mappings
  // count as one region here, because to a copy a segment that grew is a single range.
  bool FindRange(uint64_t address, uint64_t size, Region* region) const;

  // Adds an allocation at `address` and assigns a buffer id to it.
  void Add(uint64_t address, Allocation allocation);
  // Reports an allocation or its free to a tool. `record` has the address and, for stream-ordered
  // calls (`async`), the stream.
  void PostMemory(MemoryAction action, const Record& record, const Allocation& allocation,
                  bool async = false);
  // Frees the memory of one allocation. REQUIRES: `position` is in `allocations`.
  void Remove(std::map<uint64_t, Allocation>::iterator position);

  CUstream AddStream(CUcontext context, unsigned int flags, int priority);

  // Ends a context: frees everything that was allocated in it, with a log line for each in the name
  // of the call that ended it. Memory made by cuMemCreate and its mappings remain.
  void RemoveAllOf(CUcontext context, const char* call);

  // Returns the context that owns memory allocated now. A primary context that was reset while it
  // was current is revived; a destroyed context is not.
  CUresult MemoryContext(CUcontext* context);

  template <typename Visit>
  void ForEachContext(Visit visit) {
    for (auto& device : devices_) {
      if (device->primary().active) visit(&device->primary());
    }
    for (CUcontext context : contexts) visit(context);
    for (CUgreenCtx green : green_contexts) visit(&green->context);
  }

  // Drops one reference to physical memory and frees it with the last.
  void Unref(CUmemGenericAllocationHandle handle, int PhysicalMemory::*count);

  // Queues `work` on a stream: as a launch, or as a graph node if the stream is capturing. Returns
  // when it will be done: at once if work takes no time or is captured.
  uint64_t Launch(CUstream stream, Notice work);
  // The same for work that SIMCUDA_LAG does not count, because the host waits for it.
  uint64_t Enqueue(CUstream stream, Notice work);

  // Logs a call that is not a memory call, if SIMCUDA_LOG_STREAMS requests it.
  void LogStreams(const char* call, const Record& record, CUresult result = CUDA_SUCCESS);
  bool Finished(uint64_t position) const {
    return position <= synchronized || position + settings.lag <= launched;
  }
  // Called when the host has waited: all launches are finished, and pools return excess memory.
  void Synchronize();

  std::mutex mutex;
  const Settings settings;
  const bool timed;  // work takes time (timeline.h)
  Log log;

  std::map<uint64_t, Allocation> allocations;  // by address
  std::map<uint64_t, Reservation> reservations;
  std::map<uint64_t, Mapping> mappings;
  std::map<uint64_t, Global> globals;
  std::map<uint64_t, PhysicalMemory> physical;  // by handle
  AddressSpace handles{0x10000, uint64_t{1} << 40};
  std::unordered_set<CUmemoryPool> pools;  // those of cuMemPoolCreate
  std::unordered_set<CUstream> streams;
  std::unordered_set<CUevent> events;
  std::unordered_set<CUcontext> contexts;  // those of cuCtxCreate
  std::unordered_set<CUgreenCtx> green_contexts;
  std::set<CUarray> arrays;
  std::set<CUmipmappedArray> mipmapped_arrays;
  std::set<CUexternalMemory> external_memory;
  std::set<CUgraphicsResource> graphics;
  uint64_t next_buffer_id = 1;
  uint64_t next_capture_id = 1;
  uint32_t next_context_id = 1;
  uint32_t next_stream_id = 13;
  uint32_t next_event_id = 1;
  uint32_t next_module_id = 1;
  uint32_t next_graph_number = 1;
  uint64_t event_records = 0;  // over all events
  uint64_t launched = 0;
  uint64_t synchronized = 0;

 private:
  std::unique_ptr<SharedBudget> shared_;  // null: this process has the devices to itself
  std::vector<std::unique_ptr<Device>> devices_;
  std::unordered_map<std::string, uint64_t> calls_;  // number of calls, for those in FailRules
};

// Returns the current context of this thread, or null.
CUcontext CurrentContext();

// Activates a context, which takes SIMCUDA_CONTEXT bytes.
CUresult Activate(Simulator& simulator, CUcontext context);

inline uint64_t Bits(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

PoolState StateOf(CUmemoryPool pool);

// Sleeps or spins for the latency of a group.
void Wait(CallGroup group);

template <typename Body>
CUresult Call(const char* name, CallGroup group, Body body) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  ApiCall call(name);
  Wait(group);
  Simulator& simulator = Simulator::Get();
  auto locked = [&] {
    std::lock_guard<std::mutex> lock(simulator.mutex);
    CUresult injected = simulator.InjectedFailure(name);
    return injected != CUDA_SUCCESS ? injected : body(simulator);
  };
  return call.Finish(locked());
}

// `record` initially holds the arguments, so that a refused call is logged with them.
template <typename Body>
CUresult MemoryCall(const char* name, CallGroup group, Record record, Body body) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  ApiCall call(name);
  Wait(group);
  Simulator& simulator = Simulator::Get();
  auto locked = [&] {
    std::lock_guard<std::mutex> lock(simulator.mutex);
    CUresult result = simulator.InjectedFailure(name);
    if (result == CUDA_SUCCESS) result = body(simulator, record);
    simulator.log.Write(name, record, result);
    return result;
  };
  return call.Finish(locked());
}

}  // namespace sim

#endif  // TESTS_SIMCUDA_SIMULATOR_H_
