// Every call of CUDA that allocates, reserves, maps, imports or registers memory, once, and the one
// that gives it back: those of the runtime, then those of the driver.
//
// Usage: every_call [--leak] [PART...]
//   --leak  gives nothing back: one of each is live at the end
//   PART    linear, host, arrays, pools, pool_sharing, ipc, external, graphics, graph, vmm,
//           vmm_sharing, multicast: these alone. external, graphics and multicast need more of a
//           real machine than a GPU.
// Built twice: for the runtime of CUDA 13, and for that of CUDA 12 (every_call_12).
// Memory of another process comes from a second copy of the program, which is started without
// anything preloaded or injected (--export, for itself).
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "tests/programs/told.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern "C" {
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                    unsigned int flags);
cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t* resource, unsigned int buffer,
                                         unsigned int flags);
#ifdef EVERY_CALL_CUDA_12  // what CUDA 13, whose headers these are, calls cudaGraphAddNode
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph,
                                const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                                size_t count, cudaGraphNodeParams* parameters);
cudaError_t GraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                         const cudaGraphNode_t* dependencies, size_t count,
                         cudaGraphNodeParams* parameters) __asm__("cudaGraphAddNode");
#endif
}

namespace {

constexpr size_t kPage = 2 << 20;
Told told;
bool leak = false;
char registered[2][1 << 16];

// Gives something back, unless this run leaks.
#define BACK(...) \
  if (!leak) TELL(told, __VA_ARGS__)

// ---- Memory of another process ------------------------------------------------------------------

int Export() {
  void* pointer = nullptr;
  cudaIpcMemHandle_t handle = {};
  char end = 0;
  if (cudaMalloc(&pointer, 3 * kPage) != cudaSuccess ||
      cudaIpcGetMemHandle(&handle, pointer) != cudaSuccess) {
    return 1;
  }
  if (write(1, &handle, sizeof(handle)) != sizeof(handle)) return 1;
  while (read(0, &end, 1) > 0) {
  }
  return 0;
}

// What the other process inherits: the places of libraries, and no profiler.
std::vector<char*> PlainEnvironment() {
  std::vector<char*> plain;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (name == "LD_PRELOAD" || name.find("INJECTION64_PATH") != name.npos) continue;
    plain.push_back(*entry);
  }
  plain.push_back(nullptr);
  return plain;
}

// The other process lives until this one closes its end of the pipe.
class Exporter {
 public:
  Exporter() {
    int to_child[2], from_child[2];
    if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], 1);
    char name[] = "every_call", how[] = "--export";
    char* arguments[] = {name, how, nullptr};
    std::vector<char*> environment = PlainEnvironment();
    int error =
        posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    input_ = to_child[1];
    bool told_us = error == 0 && read(from_child[0], &handle_, sizeof(handle_)) == sizeof(handle_);
    close(from_child[0]);
    told.Check(told_us, "the other process exports memory");
  }
  ~Exporter() {
    close(input_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }

  const cudaIpcMemHandle_t& handle() const { return handle_; }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
  cudaIpcMemHandle_t handle_ = {};
};

// ---- The runtime --------------------------------------------------------------------------------

void RuntimeLinear() {
  void *device = nullptr, *pitched = nullptr, *managed = nullptr;
  size_t pitch = 0;
  cudaPitchedPtr volume = {};
  TELL(told, cudaMalloc(&device, 1000003));
  TELL(told, cudaMallocPitch(&pitched, &pitch, 1000, 333));
  TELL(told, cudaMalloc3D(&volume, cudaExtent{1000, 33, 7}));
  TELL(told, cudaMallocManaged(&managed, 70001, cudaMemAttachGlobal));
  BACK(cudaFree(managed));
  BACK(cudaFree(volume.ptr));
  BACK(cudaFree(pitched));
  BACK(cudaFree(device));
}

void RuntimeHost() {
  void *first = nullptr, *second = nullptr;
  TELL(told, cudaMallocHost(&first, 4099));
  TELL(told, cudaHostAlloc(&second, 8209, cudaHostAllocMapped));
  TELL(told, cudaHostRegister(registered[0], sizeof(registered[0]), 0));
  BACK(cudaHostUnregister(registered[0]));
  BACK(cudaFreeHost(second));
  BACK(cudaFreeHost(first));
}

void RuntimeArrays() {
  cudaChannelFormatDesc pixel = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};
  cudaChannelFormatDesc number = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t flat = nullptr, volume = nullptr;
  cudaMipmappedArray_t mipmapped = nullptr;
  TELL(told, cudaMallocArray(&flat, &pixel, 640, 480, 0));
  TELL(told, cudaMalloc3DArray(&volume, &number, cudaExtent{64, 32, 16}, 0));
  TELL(told, cudaMallocMipmappedArray(&mipmapped, &pixel, cudaExtent{256, 128, 0}, 8, 0));
  BACK(cudaFreeMipmappedArray(mipmapped));
  BACK(cudaFreeArray(volume));
  BACK(cudaFreeArray(flat));
}

void RuntimePools() {
  void *plain = nullptr, *pooled = nullptr;
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  TELL(told, cudaMallocAsync(&plain, 70001, nullptr));
  TELL(told, cudaMemPoolCreate(&pool, &properties));
  TELL(told, cudaMallocFromPoolAsync(&pooled, 80021, pool, nullptr));
  BACK(cudaFreeAsync(pooled, nullptr));
  BACK(cudaMemPoolDestroy(pool));
  BACK(cudaFreeAsync(plain, nullptr));
}

void RuntimePoolSharing() {
  void *pooled = nullptr, *imported = nullptr;
  cudaMemPool_t pool = nullptr, same = nullptr;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  cudaMemPoolPtrExportData data = {};
  int descriptor = -1;
  TELL(told, cudaMemPoolCreate(&pool, &properties));
  TELL(told, cudaMallocFromPoolAsync(&pooled, 80021, pool, nullptr));
  TELL(told, cudaMemPoolExportToShareableHandle(&descriptor, pool,
                                                cudaMemHandleTypePosixFileDescriptor, 0));
  TELL(told, cudaMemPoolExportPointer(&data, pooled));
  void* handle = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  TELL(told, cudaMemPoolImportFromShareableHandle(&same, handle,
                                                  cudaMemHandleTypePosixFileDescriptor, 0));
  TELL(told, cudaMemPoolImportPointer(&imported, same, &data));
  close(descriptor);
  BACK(cudaFreeAsync(imported, nullptr));
  BACK(cudaMemPoolDestroy(same));
  BACK(cudaFreeAsync(pooled, nullptr));
  BACK(cudaMemPoolDestroy(pool));
}

void RuntimeIpc(const Exporter& exporter) {
  void* theirs = nullptr;
  TELL(told, cudaIpcOpenMemHandle(&theirs, exporter.handle(), cudaIpcMemLazyEnablePeerAccess));
  // Opened again, it is the same memory, and stays until it is closed as often.
  void* again = nullptr;
  told.Check(cudaIpcOpenMemHandle(&again, exporter.handle(), cudaIpcMemLazyEnablePeerAccess) ==
                     cudaSuccess &&
                 again == theirs,
             "the same memory is at the same address");
  told.Check(cudaIpcCloseMemHandle(again) == cudaSuccess, "memory is closed once");
  // Never left open: the driver's part opens it too, and that is to be an event.
  TELL(told, cudaIpcCloseMemHandle(theirs));
}

void RuntimeExternal() {
  void* buffer = nullptr;
  cudaExternalMemory_t external = nullptr;
  cudaExternalMemoryHandleDesc handle = {};
  handle.type = cudaExternalMemoryHandleTypeOpaqueFd;
  handle.size = 5 * kPage;
  cudaExternalMemoryBufferDesc part = {};
  part.offset = kPage;
  part.size = 3 * kPage;
  TELL(told, cudaImportExternalMemory(&external, &handle));
  TELL(told, cudaExternalMemoryGetMappedBuffer(&buffer, external, &part));
  BACK(cudaFree(buffer));
  BACK(cudaDestroyExternalMemory(external));
}

void RuntimeGraphics() {
  void* buffer = nullptr;
  cudaGraphicsResource_t resource = nullptr;
  TELL(told, cudaGraphicsGLRegisterBuffer(&resource, 100, 0));
  TELL(told, cudaGraphicsMapResources(1, &resource, nullptr));
  size_t size = 0;
  TELL(told, cudaGraphicsResourceGetMappedPointer(&buffer, &size, resource));
  BACK(cudaGraphicsUnmapResources(1, &resource, nullptr));
  BACK(cudaGraphicsUnregisterResource(resource));
}

void RuntimeGraph() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaGraphNode_t allocation = nullptr, free = nullptr;
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = 90001;
  TELL(told, cudaGraphCreate(&graph, 0));
  TELL(told, cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  if (!leak) {
    TELL(told, cudaGraphAddMemFreeNode(&free, graph, &allocation, 1, memory.dptr));
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeMemAlloc;
    any.alloc.poolProps = memory.poolProps;
    any.alloc.bytesize = 91009;
#ifdef EVERY_CALL_CUDA_12
    told.Call("cudaGraphAddNode", GraphAddNode(&allocation, graph, nullptr, 0, &any));
#else
    TELL(told, cudaGraphAddNode(&allocation, graph, nullptr, nullptr, 0, &any));
#endif
    void* pointer = any.alloc.dptr;
    any = {};
    any.type = cudaGraphNodeTypeMemFree;
    any.free.dptr = pointer;
#ifdef EVERY_CALL_CUDA_12
    TELL(told, cudaGraphAddNode_v2(&free, graph, &allocation, nullptr, 1, &any));
#else
    TELL(told, cudaGraphAddNode(&free, graph, &allocation, nullptr, 1, &any));
#endif
  }
  TELL(told, cudaGraphInstantiate(&executable, graph, 0));
  TELL(told, cudaGraphLaunch(executable, nullptr));
  BACK(cudaGraphExecDestroy(executable));
  BACK(cudaGraphDestroy(graph));
  TELL(told, cudaDeviceGraphMemTrim(0));
}

// ---- The driver ---------------------------------------------------------------------------------

void DriverLinear() {
  CUdeviceptr device = 0, pitched = 0, managed = 0;
  size_t pitch = 0;
  TELL(told, cuMemAlloc(&device, 2000003));
  TELL(told, cuMemAllocPitch(&pitched, &pitch, 2000, 333, 8));
  TELL(told, cuMemAllocManaged(&managed, 170003, CU_MEM_ATTACH_HOST));
  BACK(cuMemFree(managed));
  BACK(cuMemFree(pitched));
  BACK(cuMemFree(device));
}

void DriverHost() {
  void *first = nullptr, *second = nullptr;
  TELL(told, cuMemAllocHost(&first, 4111));
  TELL(told, cuMemHostAlloc(&second, 8219, CU_MEMHOSTALLOC_PORTABLE));
  TELL(told, cuMemHostRegister(registered[1], sizeof(registered[1]), 0));
  BACK(cuMemHostUnregister(registered[1]));
  BACK(cuMemFreeHost(second));
  BACK(cuMemFreeHost(first));
}

void DriverArrays() {
  CUDA_ARRAY_DESCRIPTOR plane = {320, 240, CU_AD_FORMAT_HALF, 4};
  CUDA_ARRAY3D_DESCRIPTOR volume = {32, 32, 32, CU_AD_FORMAT_FLOAT, 2, 0};
  CUDA_ARRAY3D_DESCRIPTOR sparse = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
  CUarray flat = nullptr, deep = nullptr, empty = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  TELL(told, cuArrayCreate(&flat, &plane));
  TELL(told, cuArray3DCreate(&deep, &volume));
  TELL(told, cuArray3DCreate(&empty, &sparse));
  TELL(told, cuMipmappedArrayCreate(&mipmapped, &volume, 4));
  BACK(cuMipmappedArrayDestroy(mipmapped));
  BACK(cuArrayDestroy(empty));
  BACK(cuArrayDestroy(deep));
  BACK(cuArrayDestroy(flat));
}

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

CUmemAllocationProp OnDeviceToShare() {
  CUmemAllocationProp properties = OnDevice();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

void DriverVirtual() {
  CUmemAllocationProp properties = OnDevice();
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0, again = 0;
  TELL(told, cuMemAddressReserve(&address, 4 * kPage, 0, 0, 0));
  TELL(told, cuMemCreate(&handle, 3 * kPage, &properties, 0));
  TELL(told, cuMemMap(address, 3 * kPage, 0, handle, 0));
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  TELL(told, cuMemSetAccess(address, 3 * kPage, &access, 1));
  TELL(told, cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)));
  // This release ends what the line above began, not the memory.
  told.Check(cuMemRelease(again) == CUDA_SUCCESS, "a retained handle is released");
  BACK(cuMemUnmap(address, 3 * kPage));
  BACK(cuMemRelease(handle));
  BACK(cuMemAddressFree(address, 4 * kPage));
}

void DriverVirtualSharing() {
  CUmemAllocationProp properties = OnDeviceToShare();
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  TELL(told, cuMemCreate(&handle, 3 * kPage, &properties, 0));
  int descriptor = -1;
  TELL(told, cuMemExportToShareableHandle(&descriptor, handle,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  void* shareable = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  TELL(told, cuMemImportFromShareableHandle(&imported, shareable,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  BACK(cuMemRelease(imported));
  BACK(cuMemRelease(handle));
}

void DriverMulticast() {
  CUmulticastObjectProp properties = {};
  properties.numDevices = 1;
  properties.size = kPage;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp on_device = OnDeviceToShare();
  CUmemGenericAllocationHandle multicast = 0, memory = 0;
  CUdeviceptr address = 0;
  TELL(told, cuMulticastCreate(&multicast, &properties));
  TELL(told, cuMulticastAddDevice(multicast, 0));
  TELL(told, cuMemCreate(&memory, kPage, &on_device, 0));
  TELL(told, cuMulticastBindMem(multicast, 0, memory, 0, kPage, 0));
  TELL(told, cuMemAddressReserve(&address, kPage, 0, 0, 0));
  TELL(told, cuMemMap(address, kPage, 0, multicast, 0));
  BACK(cuMemUnmap(address, kPage));
  BACK(cuMemAddressFree(address, kPage));
  BACK(cuMulticastUnbind(multicast, 0, 0, kPage));
  BACK(cuMemRelease(memory));
  BACK(cuMemRelease(multicast));
}

void DriverPools() {
  CUdeviceptr plain = 0, pooled = 0;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  TELL(told, cuMemAllocAsync(&plain, 170011, nullptr));
  TELL(told, cuMemPoolCreate(&pool, &properties));
  TELL(told, cuMemAllocFromPoolAsync(&pooled, 180023, pool, nullptr));
  BACK(cuMemFreeAsync(pooled, nullptr));
  BACK(cuMemPoolDestroy(pool));
  BACK(cuMemFreeAsync(plain, nullptr));
}

void DriverPoolSharing() {
  CUdeviceptr pooled = 0, imported = 0;
  CUmemoryPool pool = nullptr, same = nullptr;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemPoolPtrExportData data = {};
  int descriptor = -1;
  TELL(told, cuMemPoolCreate(&pool, &properties));
  TELL(told, cuMemAllocFromPoolAsync(&pooled, 180023, pool, nullptr));
  TELL(told, cuMemPoolExportToShareableHandle(&descriptor, pool,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  TELL(told, cuMemPoolExportPointer(&data, pooled));
  void* handle = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  TELL(told, cuMemPoolImportFromShareableHandle(&same, handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  TELL(told, cuMemPoolImportPointer(&imported, same, &data));
  close(descriptor);
  BACK(cuMemFree(imported));
  BACK(cuMemPoolDestroy(same));
  BACK(cuMemFreeAsync(pooled, nullptr));
  BACK(cuMemPoolDestroy(pool));
}

void DriverIpc(const Exporter& exporter) {
  CUdeviceptr theirs = 0;
  CUipcMemHandle ipc = {};
  std::memcpy(&ipc, &exporter.handle(), sizeof(ipc));
  TELL(told, cuIpcOpenMemHandle(&theirs, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  BACK(cuIpcCloseMemHandle(theirs));
}

void DriverExternal() {
  CUdeviceptr buffer = 0;
  CUexternalMemory external = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {};
  handle.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  handle.size = 7 * kPage;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {};
  part.offset = kPage;
  part.size = 2 * kPage;
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC levels = {};
  levels.arrayDesc = {64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
  levels.numLevels = 3;
  TELL(told, cuImportExternalMemory(&external, &handle));
  TELL(told, cuExternalMemoryGetMappedBuffer(&buffer, external, &part));
  TELL(told, cuExternalMemoryGetMappedMipmappedArray(&mipmapped, external, &levels));
  BACK(cuMipmappedArrayDestroy(mipmapped));
  BACK(cuMemFree(buffer));
  BACK(cuDestroyExternalMemory(external));
}

void DriverGraphics() {
  CUdeviceptr buffer = 0;
  CUgraphicsResource resources[2] = {};
  TELL(told, cuGraphicsGLRegisterBuffer(&resources[0], 300, 0));
  TELL(told, cuGraphicsGLRegisterBuffer(&resources[1], 400, 0));
  TELL(told, cuGraphicsMapResources(2, resources, nullptr));
  size_t size = 0;
  TELL(told, cuGraphicsResourceGetMappedPointer(&buffer, &size, resources[0]));
  TELL(told, cuGraphicsResourceGetMappedPointer(&buffer, &size, resources[1]));
  BACK(cuGraphicsUnmapResources(2, resources, nullptr));
  BACK(cuGraphicsUnregisterResource(resources[1]));
  BACK(cuGraphicsUnregisterResource(resources[0]));
}

void DriverGraph() {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode allocation = nullptr, free = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS memory = {};
  memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.bytesize = 190027;
  TELL(told, cuGraphCreate(&graph, 0));
  TELL(told, cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  if (!leak) {
    TELL(told, cuGraphAddMemFreeNode(&free, graph, &allocation, 1, memory.dptr));
    CUgraphNodeParams any = {};
    any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    any.alloc.poolProps = memory.poolProps;
    any.alloc.bytesize = 191039;
    TELL(told, cuGraphAddNode(&allocation, graph, nullptr, nullptr, 0, &any));
    CUdeviceptr address = any.alloc.dptr;
    any = {};
    any.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    any.free.dptr = address;
    TELL(told, cuGraphAddNode(&free, graph, &allocation, nullptr, 1, &any));
  }
  TELL(told, cuGraphInstantiate(&executable, graph, 0));
  TELL(told, cuGraphLaunch(executable, nullptr));
  BACK(cuGraphExecDestroy(executable));
  BACK(cuGraphDestroy(graph));
}

// ---- Parts --------------------------------------------------------------------------------------

void Ipc() {
  Exporter exporter;
  RuntimeIpc(exporter);
  DriverIpc(exporter);
}

struct Part {
  const char* name;
  void (*runtime)();
  void (*driver)();
};

constexpr Part kParts[] = {
    {"linear", RuntimeLinear, DriverLinear},
    {"host", RuntimeHost, DriverHost},
    {"arrays", RuntimeArrays, DriverArrays},
    {"pools", RuntimePools, DriverPools},
    {"pool_sharing", RuntimePoolSharing, DriverPoolSharing},
    {"ipc", Ipc, nullptr},
    {"external", RuntimeExternal, DriverExternal},
    {"graphics", RuntimeGraphics, DriverGraphics},
    {"graph", RuntimeGraph, DriverGraph},
    {"vmm", nullptr, DriverVirtual},
    {"vmm_sharing", nullptr, DriverVirtualSharing},
    {"multicast", nullptr, DriverMulticast},
};

bool AllKnown(const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted) {
    const auto is = [&](const Part& part) { return name == part.name; };
    if (std::none_of(std::begin(kParts), std::end(kParts), is)) {
      std::fprintf(stderr, "every_call: no part %s\n", name.c_str());
      return false;
    }
  }
  return true;
}

bool IsWanted(const Part& part, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return true;
  for (const std::string& name : wanted) {
    if (name == part.name) return true;
  }
  return false;
}

// The driver alone needs a context.
void BeginContext() {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted(argv + 1, argv + argc);
  if (wanted == std::vector<std::string>{"--export"}) return Export();
  leak = !wanted.empty() && wanted[0] == "--leak";
  if (leak) wanted.erase(wanted.begin());
  if (!AllKnown(wanted)) return 2;
  BeginContext();
  for (const Part& part : kParts) {
    if (IsWanted(part, wanted) && part.runtime != nullptr) part.runtime();
  }
  for (const Part& part : kParts) {
    if (IsWanted(part, wanted) && part.driver != nullptr) part.driver();
  }
  return told.Finish();
}
