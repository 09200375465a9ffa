// Makes every CUDA call that allocates, reserves, maps, imports or registers memory, and its
// counterpart that releases it, first those of the runtime, then those of the driver.
//
// Usage: every_call [--leak] [PART...]
//   --leak  releases nothing: one block of each kind is live at the end
//   PART    makes only the calls of these parts: linear, host, arrays, pools, pool_sharing, ipc,
//           external, graphics, graph, vmm, vmm_sharing, multicast. A real machine needs more than
//           a GPU for external, graphics and multicast.
// Built twice: for the runtime of CUDA 13, and for that of CUDA 12 (every_call_12).
// Memory of another process comes from a second copy of the program, which is started with --export
// and without preloaded or injected libraries.
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

#include "tests/programs/truth_log.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern "C" {
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                    unsigned int flags);
cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t* resource, unsigned int buffer,
                                         unsigned int flags);
#ifdef EVERY_CALL_CUDA_12  // named cudaGraphAddNode in the headers of CUDA 13, which are used here
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
TruthLog truth;
bool leak = false;
char registered[2][1 << 16];

// Makes a call that releases memory, unless this run leaks.
#define GIVE_BACK(...) \
  if (!leak) LOG_CALL(truth, __VA_ARGS__)

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

// Returns the environment for the other process: this one's without the profiler.
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

// The other process. It lives until this one closes its end of the pipe.
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
    bool received = error == 0 && read(from_child[0], &handle_, sizeof(handle_)) == sizeof(handle_);
    close(from_child[0]);
    truth.Check(received, "the other process exports memory");
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
  LOG_CALL(truth, cudaMalloc(&device, 1000003));
  LOG_CALL(truth, cudaMallocPitch(&pitched, &pitch, 1000, 333));
  LOG_CALL(truth, cudaMalloc3D(&volume, cudaExtent{1000, 33, 7}));
  LOG_CALL(truth, cudaMallocManaged(&managed, 70001, cudaMemAttachGlobal));
  GIVE_BACK(cudaFree(managed));
  GIVE_BACK(cudaFree(volume.ptr));
  GIVE_BACK(cudaFree(pitched));
  GIVE_BACK(cudaFree(device));
}

void RuntimeHost() {
  void *first = nullptr, *second = nullptr;
  LOG_CALL(truth, cudaMallocHost(&first, 4099));
  LOG_CALL(truth, cudaHostAlloc(&second, 8209, cudaHostAllocMapped));
  LOG_CALL(truth, cudaHostRegister(registered[0], sizeof(registered[0]), 0));
  GIVE_BACK(cudaHostUnregister(registered[0]));
  GIVE_BACK(cudaFreeHost(second));
  GIVE_BACK(cudaFreeHost(first));
}

void RuntimeArrays() {
  cudaChannelFormatDesc pixel = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};
  cudaChannelFormatDesc number = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t flat = nullptr, volume = nullptr;
  cudaMipmappedArray_t mipmapped = nullptr;
  LOG_CALL(truth, cudaMallocArray(&flat, &pixel, 640, 480, 0));
  LOG_CALL(truth, cudaMalloc3DArray(&volume, &number, cudaExtent{64, 32, 16}, 0));
  LOG_CALL(truth, cudaMallocMipmappedArray(&mipmapped, &pixel, cudaExtent{256, 128, 0}, 8, 0));
  GIVE_BACK(cudaFreeMipmappedArray(mipmapped));
  GIVE_BACK(cudaFreeArray(volume));
  GIVE_BACK(cudaFreeArray(flat));
}

void RuntimePools() {
  void *plain = nullptr, *pooled = nullptr;
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  LOG_CALL(truth, cudaMallocAsync(&plain, 70001, nullptr));
  LOG_CALL(truth, cudaMemPoolCreate(&pool, &properties));
  LOG_CALL(truth, cudaMallocFromPoolAsync(&pooled, 80021, pool, nullptr));
  GIVE_BACK(cudaFreeAsync(pooled, nullptr));
  GIVE_BACK(cudaMemPoolDestroy(pool));
  GIVE_BACK(cudaFreeAsync(plain, nullptr));
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
  LOG_CALL(truth, cudaMemPoolCreate(&pool, &properties));
  LOG_CALL(truth, cudaMallocFromPoolAsync(&pooled, 80021, pool, nullptr));
  LOG_CALL(truth, cudaMemPoolExportToShareableHandle(&descriptor, pool,
                                                     cudaMemHandleTypePosixFileDescriptor, 0));
  LOG_CALL(truth, cudaMemPoolExportPointer(&data, pooled));
  void* handle = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  LOG_CALL(truth, cudaMemPoolImportFromShareableHandle(&same, handle,
                                                       cudaMemHandleTypePosixFileDescriptor, 0));
  LOG_CALL(truth, cudaMemPoolImportPointer(&imported, same, &data));
  close(descriptor);
  GIVE_BACK(cudaFreeAsync(imported, nullptr));
  GIVE_BACK(cudaMemPoolDestroy(same));
  GIVE_BACK(cudaFreeAsync(pooled, nullptr));
  GIVE_BACK(cudaMemPoolDestroy(pool));
}

void RuntimeIpc(const Exporter& exporter) {
  void* theirs = nullptr;
  LOG_CALL(truth, cudaIpcOpenMemHandle(&theirs, exporter.handle(), cudaIpcMemLazyEnablePeerAccess));
  // Opened again, it is the same memory. It stays open until it has been closed twice.
  void* again = nullptr;
  truth.Check(cudaIpcOpenMemHandle(&again, exporter.handle(), cudaIpcMemLazyEnablePeerAccess) ==
                      cudaSuccess &&
                  again == theirs,
              "the same memory is at the same address");
  truth.Check(cudaIpcCloseMemHandle(again) == cudaSuccess, "memory is closed once");
  // Closed even in a run that leaks: the driver's part opens it again, which must be an event.
  LOG_CALL(truth, cudaIpcCloseMemHandle(theirs));
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
  LOG_CALL(truth, cudaImportExternalMemory(&external, &handle));
  LOG_CALL(truth, cudaExternalMemoryGetMappedBuffer(&buffer, external, &part));
  GIVE_BACK(cudaFree(buffer));
  GIVE_BACK(cudaDestroyExternalMemory(external));
}

void RuntimeGraphics() {
  void* buffer = nullptr;
  cudaGraphicsResource_t resource = nullptr;
  LOG_CALL(truth, cudaGraphicsGLRegisterBuffer(&resource, 100, 0));
  LOG_CALL(truth, cudaGraphicsMapResources(1, &resource, nullptr));
  size_t size = 0;
  LOG_CALL(truth, cudaGraphicsResourceGetMappedPointer(&buffer, &size, resource));
  GIVE_BACK(cudaGraphicsUnmapResources(1, &resource, nullptr));
  GIVE_BACK(cudaGraphicsUnregisterResource(resource));
}

void RuntimeGraph() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaGraphNode_t allocation = nullptr, free = nullptr;
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = 90001;
  LOG_CALL(truth, cudaGraphCreate(&graph, 0));
  LOG_CALL(truth, cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  if (!leak) {
    LOG_CALL(truth, cudaGraphAddMemFreeNode(&free, graph, &allocation, 1, memory.dptr));
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeMemAlloc;
    any.alloc.poolProps = memory.poolProps;
    any.alloc.bytesize = 91009;
#ifdef EVERY_CALL_CUDA_12
    truth.Call("cudaGraphAddNode", GraphAddNode(&allocation, graph, nullptr, 0, &any));
#else
    LOG_CALL(truth, cudaGraphAddNode(&allocation, graph, nullptr, nullptr, 0, &any));
#endif
    void* pointer = any.alloc.dptr;
    any = {};
    any.type = cudaGraphNodeTypeMemFree;
    any.free.dptr = pointer;
#ifdef EVERY_CALL_CUDA_12
    LOG_CALL(truth, cudaGraphAddNode_v2(&free, graph, &allocation, nullptr, 1, &any));
#else
    LOG_CALL(truth, cudaGraphAddNode(&free, graph, &allocation, nullptr, 1, &any));
#endif
  }
  LOG_CALL(truth, cudaGraphInstantiate(&executable, graph, 0));
  LOG_CALL(truth, cudaGraphLaunch(executable, nullptr));
  GIVE_BACK(cudaGraphExecDestroy(executable));
  GIVE_BACK(cudaGraphDestroy(graph));
  LOG_CALL(truth, cudaDeviceGraphMemTrim(0));
}

// ---- The driver ---------------------------------------------------------------------------------

void DriverLinear() {
  CUdeviceptr device = 0, pitched = 0, managed = 0;
  size_t pitch = 0;
  LOG_CALL(truth, cuMemAlloc(&device, 2000003));
  LOG_CALL(truth, cuMemAllocPitch(&pitched, &pitch, 2000, 333, 8));
  LOG_CALL(truth, cuMemAllocManaged(&managed, 170003, CU_MEM_ATTACH_HOST));
  GIVE_BACK(cuMemFree(managed));
  GIVE_BACK(cuMemFree(pitched));
  GIVE_BACK(cuMemFree(device));
}

void DriverHost() {
  void *first = nullptr, *second = nullptr;
  LOG_CALL(truth, cuMemAllocHost(&first, 4111));
  LOG_CALL(truth, cuMemHostAlloc(&second, 8219, CU_MEMHOSTALLOC_PORTABLE));
  LOG_CALL(truth, cuMemHostRegister(registered[1], sizeof(registered[1]), 0));
  GIVE_BACK(cuMemHostUnregister(registered[1]));
  GIVE_BACK(cuMemFreeHost(second));
  GIVE_BACK(cuMemFreeHost(first));
}

void DriverArrays() {
  CUDA_ARRAY_DESCRIPTOR plane = {320, 240, CU_AD_FORMAT_HALF, 4};
  CUDA_ARRAY3D_DESCRIPTOR volume = {32, 32, 32, CU_AD_FORMAT_FLOAT, 2, 0};
  CUDA_ARRAY3D_DESCRIPTOR sparse = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
  CUarray flat = nullptr, deep = nullptr, empty = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  LOG_CALL(truth, cuArrayCreate(&flat, &plane));
  LOG_CALL(truth, cuArray3DCreate(&deep, &volume));
  LOG_CALL(truth, cuArray3DCreate(&empty, &sparse));
  LOG_CALL(truth, cuMipmappedArrayCreate(&mipmapped, &volume, 4));
  GIVE_BACK(cuMipmappedArrayDestroy(mipmapped));
  GIVE_BACK(cuArrayDestroy(empty));
  GIVE_BACK(cuArrayDestroy(deep));
  GIVE_BACK(cuArrayDestroy(flat));
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
  LOG_CALL(truth, cuMemAddressReserve(&address, 4 * kPage, 0, 0, 0));
  LOG_CALL(truth, cuMemCreate(&handle, 3 * kPage, &properties, 0));
  LOG_CALL(truth, cuMemMap(address, 3 * kPage, 0, handle, 0));
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  LOG_CALL(truth, cuMemSetAccess(address, 3 * kPage, &access, 1));
  LOG_CALL(truth, cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)));
  // This drops the reference that the line above took; the memory stays.
  truth.Check(cuMemRelease(again) == CUDA_SUCCESS, "a retained handle is released");
  GIVE_BACK(cuMemUnmap(address, 3 * kPage));
  GIVE_BACK(cuMemRelease(handle));
  GIVE_BACK(cuMemAddressFree(address, 4 * kPage));
}

void DriverVirtualSharing() {
  CUmemAllocationProp properties = OnDeviceToShare();
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  LOG_CALL(truth, cuMemCreate(&handle, 3 * kPage, &properties, 0));
  int descriptor = -1;
  LOG_CALL(truth, cuMemExportToShareableHandle(&descriptor, handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  void* shareable = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  LOG_CALL(truth, cuMemImportFromShareableHandle(&imported, shareable,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  GIVE_BACK(cuMemRelease(imported));
  GIVE_BACK(cuMemRelease(handle));
}

void DriverMulticast() {
  CUmulticastObjectProp properties = {};
  properties.numDevices = 1;
  properties.size = kPage;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp on_device = OnDeviceToShare();
  CUmemGenericAllocationHandle multicast = 0, memory = 0;
  CUdeviceptr address = 0;
  LOG_CALL(truth, cuMulticastCreate(&multicast, &properties));
  LOG_CALL(truth, cuMulticastAddDevice(multicast, 0));
  LOG_CALL(truth, cuMemCreate(&memory, kPage, &on_device, 0));
  LOG_CALL(truth, cuMulticastBindMem(multicast, 0, memory, 0, kPage, 0));
  LOG_CALL(truth, cuMemAddressReserve(&address, kPage, 0, 0, 0));
  LOG_CALL(truth, cuMemMap(address, kPage, 0, multicast, 0));
  GIVE_BACK(cuMemUnmap(address, kPage));
  GIVE_BACK(cuMemAddressFree(address, kPage));
  GIVE_BACK(cuMulticastUnbind(multicast, 0, 0, kPage));
  GIVE_BACK(cuMemRelease(memory));
  GIVE_BACK(cuMemRelease(multicast));
}

void DriverPools() {
  CUdeviceptr plain = 0, pooled = 0;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  LOG_CALL(truth, cuMemAllocAsync(&plain, 170011, nullptr));
  LOG_CALL(truth, cuMemPoolCreate(&pool, &properties));
  LOG_CALL(truth, cuMemAllocFromPoolAsync(&pooled, 180023, pool, nullptr));
  GIVE_BACK(cuMemFreeAsync(pooled, nullptr));
  GIVE_BACK(cuMemPoolDestroy(pool));
  GIVE_BACK(cuMemFreeAsync(plain, nullptr));
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
  LOG_CALL(truth, cuMemPoolCreate(&pool, &properties));
  LOG_CALL(truth, cuMemAllocFromPoolAsync(&pooled, 180023, pool, nullptr));
  LOG_CALL(truth, cuMemPoolExportToShareableHandle(&descriptor, pool,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  LOG_CALL(truth, cuMemPoolExportPointer(&data, pooled));
  void* handle = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  LOG_CALL(truth, cuMemPoolImportFromShareableHandle(&same, handle,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  LOG_CALL(truth, cuMemPoolImportPointer(&imported, same, &data));
  close(descriptor);
  GIVE_BACK(cuMemFree(imported));
  GIVE_BACK(cuMemPoolDestroy(same));
  GIVE_BACK(cuMemFreeAsync(pooled, nullptr));
  GIVE_BACK(cuMemPoolDestroy(pool));
}

void DriverIpc(const Exporter& exporter) {
  CUdeviceptr theirs = 0;
  CUipcMemHandle ipc = {};
  std::memcpy(&ipc, &exporter.handle(), sizeof(ipc));
  LOG_CALL(truth, cuIpcOpenMemHandle(&theirs, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  GIVE_BACK(cuIpcCloseMemHandle(theirs));
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
  LOG_CALL(truth, cuImportExternalMemory(&external, &handle));
  LOG_CALL(truth, cuExternalMemoryGetMappedBuffer(&buffer, external, &part));
  LOG_CALL(truth, cuExternalMemoryGetMappedMipmappedArray(&mipmapped, external, &levels));
  GIVE_BACK(cuMipmappedArrayDestroy(mipmapped));
  GIVE_BACK(cuMemFree(buffer));
  GIVE_BACK(cuDestroyExternalMemory(external));
}

void DriverGraphics() {
  CUdeviceptr buffer = 0;
  CUgraphicsResource resources[2] = {};
  LOG_CALL(truth, cuGraphicsGLRegisterBuffer(&resources[0], 300, 0));
  LOG_CALL(truth, cuGraphicsGLRegisterBuffer(&resources[1], 400, 0));
  LOG_CALL(truth, cuGraphicsMapResources(2, resources, nullptr));
  size_t size = 0;
  LOG_CALL(truth, cuGraphicsResourceGetMappedPointer(&buffer, &size, resources[0]));
  LOG_CALL(truth, cuGraphicsResourceGetMappedPointer(&buffer, &size, resources[1]));
  GIVE_BACK(cuGraphicsUnmapResources(2, resources, nullptr));
  GIVE_BACK(cuGraphicsUnregisterResource(resources[1]));
  GIVE_BACK(cuGraphicsUnregisterResource(resources[0]));
}

void DriverGraph() {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode allocation = nullptr, free = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS memory = {};
  memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.bytesize = 190027;
  LOG_CALL(truth, cuGraphCreate(&graph, 0));
  LOG_CALL(truth, cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  if (!leak) {
    LOG_CALL(truth, cuGraphAddMemFreeNode(&free, graph, &allocation, 1, memory.dptr));
    CUgraphNodeParams any = {};
    any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    any.alloc.poolProps = memory.poolProps;
    any.alloc.bytesize = 191039;
    LOG_CALL(truth, cuGraphAddNode(&allocation, graph, nullptr, nullptr, 0, &any));
    CUdeviceptr address = any.alloc.dptr;
    any = {};
    any.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    any.free.dptr = address;
    LOG_CALL(truth, cuGraphAddNode(&free, graph, &allocation, nullptr, 1, &any));
  }
  LOG_CALL(truth, cuGraphInstantiate(&executable, graph, 0));
  LOG_CALL(truth, cuGraphLaunch(executable, nullptr));
  GIVE_BACK(cuGraphExecDestroy(executable));
  GIVE_BACK(cuGraphDestroy(graph));
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

// Makes the primary context current, which the driver's functions need.
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
  return truth.Finish();
}
