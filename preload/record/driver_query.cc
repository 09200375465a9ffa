#include "preload/record/driver_query.h"

#include <cuda.h>
#include <string.h>

#include <atomic>

#include "preload/loader/real_function.h"
#include "session/vocabulary.h"

namespace gmt::preload {
namespace {

// A driver function, looked up when it is first called. If it is not found, the lookup is repeated
// at the first calls and then ever more rarely, because the loader searches the disk for a missing
// library.
template <typename Function>
class DriverFunction {
 public:
  explicit constexpr DriverFunction(const char* name) : name_(name) {}

  template <typename... Arguments>
  bool Succeeds(Arguments... arguments) {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      const uint32_t before = misses_.fetch_add(1, std::memory_order_relaxed);
      if ((before & (before - 1)) != 0) return false;  // not a power of two
      function = reinterpret_cast<Function*>(FindDriverFunction(name_));
      function_.store(function, std::memory_order_release);
    }
    return function != nullptr && function(arguments...) == CUDA_SUCCESS;
  }

 private:
  const char* const name_;
  std::atomic<Function*> function_{nullptr};
  std::atomic<uint32_t> misses_{0};
};

// Cache: functions of the driver.
constinit DriverFunction<decltype(cuCtxGetCurrent)> ctx_get_current("cuCtxGetCurrent");
constinit DriverFunction<decltype(cuCtxGetDevice)> ctx_get_device("cuCtxGetDevice");
constinit DriverFunction<decltype(cuDevicePrimaryCtxGetState)> primary_get_state(
    "cuDevicePrimaryCtxGetState");
constinit DriverFunction<decltype(cuDevicePrimaryCtxRetain)> primary_retain(
    "cuDevicePrimaryCtxRetain");
constinit DriverFunction<decltype(cuDevicePrimaryCtxRelease)> primary_release(
    "cuDevicePrimaryCtxRelease_v2");
constinit DriverFunction<decltype(cuDeviceGetCount)> device_get_count("cuDeviceGetCount");
constinit DriverFunction<decltype(cuDriverGetVersion)> driver_get_version("cuDriverGetVersion");
constinit DriverFunction<decltype(cuDeviceGetName)> device_get_name("cuDeviceGetName");
// The newer function returns the UUID of a MIG instance, the older one that of the whole device.
constinit DriverFunction<decltype(cuDeviceGetUuid)> device_get_uuid("cuDeviceGetUuid");
constinit DriverFunction<decltype(cuDeviceGetUuid)> device_get_uuid_2("cuDeviceGetUuid_v2");
constinit DriverFunction<decltype(cuDeviceGetPCIBusId)> device_get_pci_bus_id(
    "cuDeviceGetPCIBusId");
constinit DriverFunction<decltype(cuDeviceTotalMem)> device_total_mem("cuDeviceTotalMem_v2");
constinit DriverFunction<decltype(cuDeviceGetAttribute)> device_get_attribute(
    "cuDeviceGetAttribute");
constinit DriverFunction<decltype(cuPointerGetAttributes)> pointer_get_attributes(
    "cuPointerGetAttributes");
constinit DriverFunction<decltype(cuMemGetAddressRange)> mem_get_address_range(
    "cuMemGetAddressRange_v2");
constinit DriverFunction<decltype(cuMemGetInfo)> mem_get_info("cuMemGetInfo_v2");

// In the format of nvidia-smi: 8, 4, 4, 4 and 12 digits.
void WriteUuid(const CUuuid& uuid, char* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  memcpy(text, "GPU", 3);
  text += 3;
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) *text++ = '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    *text++ = kDigits[byte >> 4];
    *text++ = kDigits[byte & 15];
  }
  *text = '\0';
}

int Attribute(CUdevice_attribute attribute, int device) {
  int value = 0;
  return device_get_attribute.Succeeds(&value, attribute, device) ? value : 0;
}

}  // namespace

uint64_t CurrentContext() {
  CUcontext context = nullptr;
  return ctx_get_current.Succeeds(&context) ? reinterpret_cast<uint64_t>(context) : 0;
}

uint8_t CurrentDevice() {
  CUdevice device;
  return ctx_get_device.Succeeds(&device) ? static_cast<uint8_t>(device) : session::kNoDevice;
}

bool DriverIsInitialized() {
  int count;
  return device_get_count.Succeeds(&count);
}

bool PrimaryContextIsActive(int device) {
  unsigned flags;
  int active = 0;
  return primary_get_state.Succeeds(device, &flags, &active) && active != 0;
}

// The driver provides the handle only together with a reference, which is released at once.
uint64_t PrimaryContext(int device) {
  CUcontext context = nullptr;
  if (!PrimaryContextIsActive(device) || !primary_retain.Succeeds(&context, device)) return 0;
  primary_release.Succeeds(device);
  return reinterpret_cast<uint64_t>(context);
}

unsigned DriverVersion() {
  static constinit std::atomic<unsigned> known{0};
  unsigned version = known.load(std::memory_order_relaxed);
  int reported = 0;
  if (version == 0 && driver_get_version.Succeeds(&reported) && reported > 0) {
    version = static_cast<unsigned>(reported);
    known.store(version, std::memory_order_relaxed);
  }
  return version != 0 ? version : ~0u;
}

// The function succeeds for any address, and stores zero if it is not a CUDA address.
bool DeviceOf(uint64_t address, uint8_t* device) {
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  unsigned type = 0, is_managed = 0;
  int ordinal = -1;
  void* answers[] = {&type, &is_managed, &ordinal};
  if (!pointer_get_attributes.Succeeds(3u, attributes, answers, CUdeviceptr{address})) return false;
  if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE) return false;
  const bool is_host = type == CU_MEMORYTYPE_HOST && is_managed == 0;
  *device = is_host || ordinal < 0 ? session::kNoDevice : static_cast<uint8_t>(ordinal);
  return true;
}

uint64_t AllocationSize(uint64_t address) {
  CUdeviceptr start;
  size_t size;
  return mem_get_address_range.Succeeds(&start, &size, CUdeviceptr{address}) ? size : 0;
}

void IdentifyDevice(int device, DeviceIdentity* identity) {
  *identity = {};
  const auto name_size = static_cast<int>(sizeof(identity->name));
  if (!device_get_name.Succeeds(identity->name, name_size, device)) identity->name[0] = '\0';
  identity->name[name_size - 1] = '\0';
  CUuuid uuid;
  if (device_get_uuid_2.Succeeds(&uuid, device) || device_get_uuid.Succeeds(&uuid, device))
    WriteUuid(uuid, identity->uuid);
  const auto id_size = static_cast<int>(sizeof(identity->pci_bus_id));
  if (!device_get_pci_bus_id.Succeeds(identity->pci_bus_id, id_size, device))
    identity->pci_bus_id[0] = '\0';
  identity->pci_bus_id[id_size - 1] = '\0';
  size_t total;
  if (device_total_mem.Succeeds(&total, device)) identity->total_bytes = total;
  identity->compute_capability =
      10 * Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) +
      Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

bool MemoryOfDevice(uint64_t* free, uint64_t* total) {
  size_t free_bytes = 0, total_bytes = 0;
  if (!mem_get_info.Succeeds(&free_bytes, &total_bytes)) return false;
  *free = free_bytes;
  *total = total_bytes;
  return true;
}

}  // namespace gmt::preload
