// Modules, libraries and kernel launches. Any image loads, any name is found in it, and a kernel
// does nothing but count.
#include "tests/simcuda/image_size.h"
#include "tests/simcuda/simulator.h"

namespace {

using sim::Call;
using sim::CallGroup;
using sim::Simulator;

constexpr uint64_t kGlobalSize = 64
                                 << 10;  // addresses for one global variable; its size is unknown

// Returns a permanent copy of the name, because launched work outlives the module.
const char* Name(const char* name) {
  static std::unordered_set<std::string>& names = *new std::unordered_set<std::string>;
  return names.insert(name).first->c_str();
}

// Fills in the parts of a module and notifies a tool.
void Describe(Simulator& simulator, CUmod_st& module, const void* image) {
  module.id = simulator.next_module_id++;
  module.image = image;
  module.image_size = sim::ImageSize(image);
  sim::Post({.kind = sim::NoticeKind::kModuleLoaded,
             .device = module.device,
             .module_id = module.id,
             .image = image,
             .image_size = module.image_size});
}

void AnnounceEnd(const CUmod_st& module) {
  sim::DeliverNow({.kind = sim::NoticeKind::kModuleUnloadStarting,
                   .device = module.device,
                   .module_id = module.id,
                   .image = module.image,
                   .image_size = module.image_size});
}

CUresult Load(const char* name, CUmodule* module, const void* image) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext context = sim::CurrentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *module = new CUmod_st{.device = context->device};
    Describe(simulator, **module, image);
    return CUDA_SUCCESS;
  });
}

CUresult Global(Simulator& simulator, CUmod_st& module, const char* name, CUdeviceptr* address,
                size_t* size) {
  uint64_t& global = module.globals[name];
  if (global == 0) {
    global = simulator.device(module.device)->Reserve(kGlobalSize, 512, 0);
    if (global == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    simulator.globals[global] = {
        .size = kGlobalSize, .device = module.device, .buffer_id = simulator.next_buffer_id++};
  }
  if (address != nullptr) *address = global;
  if (size != nullptr) *size = kGlobalSize;
  return CUDA_SUCCESS;
}

void RemoveGlobals(Simulator& simulator, const CUmod_st& module) {
  for (auto& [name, address] : module.globals) {
    simulator.globals.erase(address);
    simulator.device(module.device)->Unreserve(address, kGlobalSize);
  }
}

struct Shape {
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared_memory;
};

CUresult Launch(const char* name, CUfunction function, const Shape& shape, CUstream stream) {
  return Call(name, CallGroup::kLaunch, [&](Simulator& simulator) {
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (sim::CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    uint64_t done =
        simulator.Launch(stream, {.name = function->name,
                                  .grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
                                  .block = {shape.block[0], shape.block[1], shape.block[2]},
                                  .shared_memory = shape.shared_memory});
    simulator.LogStreams(
        name,
        {.stream = sim::Bits(stream), .device = sim::CurrentContext()->device, .done_ns = done});
    return CUDA_SUCCESS;
  });
}

CUresult Attribute(int* value, CUfunction_attribute attribute) {
  const sim::Settings& settings = Simulator::Get().settings;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 10 * settings.compute_major + settings.compute_minor;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = 48 << 10;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult ActiveBlocks(int* blocks, int block_size) {
  if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = block_size > 1024 ? 0 : 2048 / block_size < 32 ? 2048 / block_size : 32;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char*) { return Load(__func__, module, nullptr); }

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return Load(__func__, module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return Load(__func__, module, image);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return Load(__func__, module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  sim::ApiCall call(__func__);
  if (module != nullptr) AnnounceEnd(*module);
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    RemoveGlobals(simulator, *module);
    delete module;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto& entry = module->functions[name];
    if (entry == nullptr) entry = std::make_unique<CUfunc_st>(CUfunc_st{module, Name(name)});
    *function = entry.get();
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule module,
                              const char* name) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return Global(simulator, *module, name, address, size);
  });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext context = sim::CurrentContext();
    *library = new CUlib_st;
    (*library)->module.device = context != nullptr ? context->device : 0;
    Describe(simulator, (*library)->module, image);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  sim::ApiCall call(__func__);
  if (library != nullptr) AnnounceEnd(library->module);
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    RemoveGlobals(simulator, library->module);
    delete library;
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto& entry = library->kernels[name];
    if (entry == nullptr) {
      entry = std::make_unique<CUkern_st>(CUkern_st{{&library->module, Name(name)}});
    }
    *kernel = entry.get();
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  *module = &library->module;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library,
                            const char* name) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return Global(simulator, library->module, name, address, size);
  });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  *function = &kernel->function;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel, CUdevice) {
  return Attribute(value, attribute);
}

CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) {
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  return Attribute(value, attribute);
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  *module = function->module;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = function->name;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_memory, CUstream stream, void**,
                        void**) {
  Shape shape = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_memory};
  return Launch(__func__, function, shape, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  Shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 config->sharedMemBytes};
  return Launch(__func__, function, shape, config->hStream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_memory,
                                   CUstream stream, void**) {
  Shape shape = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_memory};
  return Launch(__func__, function, shape, stream);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size,
                                                     size_t) {
  return ActiveBlocks(blocks, block_size);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction,
                                                              int block_size, size_t,
                                                              unsigned int) {
  return ActiveBlocks(blocks, block_size);
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  *clusters = 1;
  return CUDA_SUCCESS;
}

CUresult cuLinkCreate_v2(unsigned int, CUjit_option*, void**, CUlinkState* state) {
  static char linker;
  *state = reinterpret_cast<CUlinkState>(&linker);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned int,
                          CUjit_option*, void**) {
  return CUDA_SUCCESS;
}

CUresult cuLinkAddFile_v2(CUlinkState, CUjitInputType, const char*, unsigned int, CUjit_option*,
                          void**) {
  return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState, void** image, size_t* size) {
  static char empty[1];
  *image = empty;
  if (size != nullptr) *size = sizeof(empty);
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState) { return CUDA_SUCCESS; }

CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_SUCCESS;
}
