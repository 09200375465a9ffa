#include "tests/simcuda/simulator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <iterator>

#include "tests/simcuda/timeline.h"

namespace sim {
namespace {

enum class State { kNotInitialized, kReady, kForked };
std::atomic<State> state{State::kNotInitialized};

void InForkChild() {
  if (state.load() == State::kReady) state.store(State::kForked);
}

// Below this, waits spin, because sleeping takes at least the kernel's timer slack.
constexpr uint64_t kShortestSleepNs = 200'000;

}  // namespace

Simulator& Simulator::Get() {
  static Simulator* simulator = new Simulator(Settings::FromEnvironment());
  return *simulator;
}

CUresult Simulator::Ready() {
  return state.load(std::memory_order_acquire) == State::kReady ? CUDA_SUCCESS
                                                                : CUDA_ERROR_NOT_INITIALIZED;
}

Simulator::Simulator(const Settings& settings)
    : settings(settings),
      timed(settings.kernel_time_ns > 0 || settings.bandwidth > 0),
      log(settings.log, settings.log_streams) {
  for (const FailRule& rule : settings.failures) calls_[rule.call] = 0;
}

CUresult Simulator::Init() {
  if (state.load() == State::kForked) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard<std::mutex> lock(mutex);
  if (state.load() == State::kReady) return CUDA_SUCCESS;
  if (settings.visible.empty()) return CUDA_ERROR_NO_DEVICE;
  if (!settings.shared.empty()) shared_ = std::make_unique<SharedBudget>(settings.shared);
  for (int physical : settings.visible) {
    const int ordinal = static_cast<int>(devices_.size());
    devices_.push_back(std::make_unique<Device>(ordinal, physical, settings, shared_.get()));
  }
  pthread_atfork(nullptr, nullptr, InForkChild);
  state.store(State::kReady, std::memory_order_release);
  return CUDA_SUCCESS;
}

Device* Simulator::device(int ordinal) {
  if (ordinal < 0 || ordinal >= static_cast<int>(devices_.size())) return nullptr;
  return devices_[ordinal].get();
}

CUresult Simulator::InjectedFailure(const char* call) {
  if (calls_.empty()) return CUDA_SUCCESS;
  auto counter = calls_.find(call);
  if (counter == calls_.end()) return CUDA_SUCCESS;
  uint64_t nth = ++counter->second;
  for (const FailRule& rule : settings.failures) {
    if (rule.call == call && (nth == rule.nth || (rule.onwards && nth > rule.nth))) {
      return static_cast<CUresult>(rule.code);
    }
  }
  return CUDA_SUCCESS;
}

bool Simulator::Find(uint64_t address, Region* region) const {
  if (auto next = allocations.upper_bound(address); next != allocations.begin()) {
    auto& [base, allocation] = *std::prev(next);
    if (address - base < allocation.size) {
      MemoryKind kind = allocation.kind;
      bool host = kind == MemoryKind::kHost || kind == MemoryKind::kRegistered;
      *region = {.base = base,
                 .size = allocation.size,
                 .device = allocation.device,
                 .host_accessible = host || kind == MemoryKind::kManaged || settings.data > 0,
                 .device_memory = !host,
                 .allocation = &allocation,
                 .buffer_id = allocation.buffer_id};
      return true;
    }
  }
  if (auto next = mappings.upper_bound(address); next != mappings.begin()) {
    auto& [base, mapping] = *std::prev(next);
    if (address - base < mapping.size) {
      const PhysicalMemory& memory = physical.at(mapping.handle);
      *region = {.base = base,
                 .size = mapping.size,
                 .device = memory.properties.location.id,
                 .host_accessible = settings.data > 0,
                 .device_memory = true,
                 .allocation = nullptr,
                 .buffer_id = mapping.buffer_id};
      return true;
    }
  }
  if (auto next = globals.upper_bound(address); next != globals.begin()) {
    auto& [base, global] = *std::prev(next);
    if (address - base < global.size) {
      *region = {.base = base,
                 .size = global.size,
                 .device = global.device,
                 .host_accessible = false,
                 .device_memory = true,
                 .allocation = nullptr,
                 .buffer_id = global.buffer_id};
      return true;
    }
  }
  return false;
}

bool Simulator::FindRange(uint64_t address, uint64_t size, Region* region) const {
  if (!Find(address, region)) return false;
  while (size > region->base + region->size - address) {
    Region next;
    if (region->allocation != nullptr || !Find(region->base + region->size, &next) ||
        next.allocation != nullptr) {
      return false;
    }
    region->size += next.size;
  }
  return true;
}

PoolState StateOf(CUmemoryPool pool) {
  return {.handle = Bits(pool),
          .imported = pool->imported,
          .release_threshold = pool->release_threshold,
          .reserved = pool->reserved(),
          .used = pool->used()};
}

void Simulator::Add(uint64_t address, Allocation allocation) {
  allocation.buffer_id = next_buffer_id++;
  allocations[address] = allocation;
}

void Simulator::PostMemory(MemoryAction action, const Record& record, const Allocation& allocation,
                           bool async) {
  if (!IsReported()) return;
  const bool is_host =
      allocation.kind == MemoryKind::kHost || allocation.kind == MemoryKind::kRegistered;
  Memory kind = is_host                                   ? Memory::kPinned
                : allocation.kind == MemoryKind::kManaged ? Memory::kManaged
                                                          : Memory::kDevice;
  Post({.kind = NoticeKind::kMemory,
        .context = allocation.context,
        .device = allocation.device,
        .stream = reinterpret_cast<CUstream>(record.stream),
        .end_ns = Now(),
        .to = kind,
        .memory_action = action,
        .async = async,
        .address = record.address,
        .size = allocation.size,
        .pool = allocation.pool != nullptr ? StateOf(allocation.pool) : PoolState{}});
}

void Simulator::Remove(std::map<uint64_t, Allocation>::iterator position) {
  auto& [address, allocation] = *position;
  switch (allocation.kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kManaged:
      devices_[allocation.device]->Free(address, allocation.size);
      break;
    case MemoryKind::kPool:
      if (allocation.pool->Free(address, allocation.size)) delete allocation.pool;
      break;
    case MemoryKind::kHost:
      munmap(reinterpret_cast<void*>(address), allocation.size);
      break;
    case MemoryKind::kImported:
    case MemoryKind::kImportedPool:
    case MemoryKind::kExternal:
    case MemoryKind::kGraphics:
      devices_[allocation.device]->Unreserve(address, RoundUp(allocation.size, kPage));
      break;
    case MemoryKind::kGraph:  // the addresses belong to the node, the memory to the pool of graphs
      devices_[allocation.device]->graph_pool().used -= RoundUp(allocation.size, kPage);
      break;
    case MemoryKind::kRegistered:
      break;
  }
  allocations.erase(position);
}

namespace {

// Removes the objects of `context` from `set`; frees and logs each.
template <typename Handle, typename Release>
void EndAll(std::set<Handle>& set, CUcontext context, const char* call, Log& log, Release release) {
  for (auto position = set.begin(); position != set.end();) {
    Handle object = *position;
    if (object->context != context) {
      ++position;
      continue;
    }
    log.Write(call,
              {.address = Bits(object),
               .size = object->size,
               .handle = Bits(object),
               .device = object->device},
              CUDA_SUCCESS);
    release(*object);
    delete object;
    position = set.erase(position);
  }
}

template <typename Handle>
void DropAll(std::unordered_set<Handle>& set, CUcontext context) {
  std::erase_if(set, [&](Handle object) {
    bool ends = object->context == context;
    if (ends) delete object;
    return ends;
  });
}

}  // namespace

void Simulator::RemoveAllOf(CUcontext context, const char* call) {
  for (auto position = allocations.begin(); position != allocations.end();) {
    auto next = std::next(position);
    auto& [address, allocation] = *position;
    if (allocation.context == context) {
      log.Write(call,
                {.address = address,
                 .size = allocation.size,
                 .handle = Bits(allocation.pool),
                 .device = allocation.device},
                CUDA_SUCCESS);
      Remove(position);
    }
    position = next;
  }
  auto return_memory = [&](auto& array) {
    if (array.address != 0) devices_[array.device]->Free(array.address, array.size);
  };
  EndAll(arrays, context, call, log, return_memory);
  EndAll(mipmapped_arrays, context, call, log, return_memory);
  EndAll(external_memory, context, call, log, [](auto&) {});
  // Mapped resources were unmapped above, together with their allocations.
  std::erase_if(graphics, [&](CUgraphicsResource resource) {
    bool ends = resource->context == context;
    if (ends) delete resource;
    return ends;
  });
  context->times = {};
  DropAll(streams, context);
  DropAll(events, context);
}

CUresult Simulator::MemoryContext(CUcontext* context) {
  CUcontext current = CurrentContext();
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (current->memory_context != nullptr) current = current->memory_context;
  *context = current;
  if (current->active) return CUDA_SUCCESS;
  return current->primary ? Activate(*this, current) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void Simulator::Unref(CUmemGenericAllocationHandle handle, int PhysicalMemory::*count) {
  PhysicalMemory& memory = physical.at(handle);
  --(memory.*count);
  if (memory.handles > 0 || memory.mappings > 0) return;
  if (memory.charged) devices_[memory.properties.location.id]->budget().Return(memory.size);
  PhysicalMemory last = std::move(memory);
  physical.erase(handle);
  handles.Release(handle, 16);
  if (last.same_as != 0) Unref(last.same_as, &PhysicalMemory::mappings);
  for (auto& [offset, bound] : last.bound) Unref(bound, &PhysicalMemory::mappings);
}

CUstream Simulator::AddStream(CUcontext context, unsigned int flags, int priority) {
  CUstream stream = new CUstream_st{
      .context = context, .flags = flags, .priority = priority, .id = next_stream_id++};
  streams.insert(stream);
  Post({.kind = NoticeKind::kStreamCreated,
        .context = context,
        .device = context->device,
        .stream = stream,
        .stream_flags = flags,
        .stream_priority = priority});
  return stream;
}

uint64_t Simulator::Launch(CUstream stream, Notice work) {
  if (!streams.contains(stream) || stream->capture == nullptr) ++launched;
  return Enqueue(stream, work);
}

uint64_t Simulator::Enqueue(CUstream stream, Notice work) {
  bool known = streams.contains(stream);
  if (known && stream->capture != nullptr) {
    auto node = std::make_unique<CUgraphNode_st>();
    node->type = work.work == WorkKind::kCopy  ? CU_GRAPH_NODE_TYPE_MEMCPY
                 : work.work == WorkKind::kSet ? CU_GRAPH_NODE_TYPE_MEMSET
                                               : CU_GRAPH_NODE_TYPE_KERNEL;
    node->work = work;
    stream->capture->nodes.push_back(std::move(node));
    return Now();
  }
  work.kind = NoticeKind::kWork;
  work.stream = stream;
  work.context = known ? stream->context : CurrentContext();
  work.device = work.context != nullptr ? work.context->device : 0;
  Span span = Queue(*this, work.context, stream, DurationOf(*this, work));
  work.start_ns = span.start_ns;
  work.end_ns = span.end_ns;
  Post(work);
  return span.end_ns;
}

void Simulator::LogStreams(const char* call, const Record& record, CUresult result) {
  if (settings.log_streams) log.Write(call, record, result);
}

void Simulator::Synchronize() {
  synchronized = launched;
  for (auto& device : devices_) {
    device->default_pool().TrimTo(device->default_pool().release_threshold);
  }
  for (CUmemoryPool pool : pools) pool->TrimTo(pool->release_threshold);
}

void Wait(CallGroup group) {
  uint64_t nanoseconds = Simulator::Get().settings.latency_ns[static_cast<size_t>(group)];
  if (nanoseconds == 0) return;
  if (nanoseconds >= kShortestSleepNs) {
    timespec duration = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                         static_cast<long>(nanoseconds % 1'000'000'000)};
    nanosleep(&duration, nullptr);
    return;
  }
  for (uint64_t end = Now() + nanoseconds; Now() < end;) {
  }
}

}  // namespace sim
