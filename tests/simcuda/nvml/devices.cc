#include "tests/simcuda/nvml/devices.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tests/simcuda/export_table.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/shared_budget.h"

namespace sim {
namespace {

std::mutex mutex;

const Settings& TheSettings() {
  static const Settings& settings = *new Settings(Settings::FromEnvironment());
  return settings;
}

// REQUIRES: `mutex` is held.
NvmlScript& Script() {
  static NvmlScript* script = [] {
    const char* path = std::getenv("SIMCUDA_NVML");
    return path == nullptr || *path == '\0' ? new NvmlScript : new NvmlScript(path);
  }();
  return *script;
}

NvmlScript::Values ScriptOf(const std::string& key, bool is_query) {
  static std::map<std::string, uint64_t> queries;
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t& query = queries[key];
  if (is_query) ++query;
  return Script().At(key, std::max<uint64_t>(query, 1));
}

// Returns null before this process has initialised CUDA, or if it does not use CUDA at all.
const ExportTable* Driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  auto get_table = reinterpret_cast<decltype(cuGetExportTable)*>(dlsym(driver, "cuGetExportTable"));
  const void* table = nullptr;
  const bool found = get_table != nullptr && get_table(&table, &kExportTableId) == CUDA_SUCCESS;
  return found ? static_cast<const ExportTable*>(table) : nullptr;
}

// Returns the number of a device in this process's CUDA; -1: not visible.
int OrdinalOf(int physical) {
  const std::vector<int>& visible = TheSettings().visible;
  const auto found = std::find(visible.begin(), visible.end(), physical);
  return found == visible.end() ? -1 : static_cast<int>(found - visible.begin());
}

// Returns the processes of the simulated machine that hold memory of a device.
std::vector<NvmlScript::Process> Holders(int physical) {
  std::vector<NvmlScript::Process> processes;
  const ExportTable* driver = Driver();
  const int ordinal = OrdinalOf(physical);
  if (driver != nullptr && ordinal >= 0) {
    std::vector<ProcessUse> list(SharedBudget::kMaxProcesses);
    unsigned int count = 0;
    if (driver->processes(ordinal, list.data(), SharedBudget::kMaxProcesses, &count) ==
        CUDA_SUCCESS) {
      for (unsigned int i = 0; i < count && i < list.size(); ++i)
        processes.push_back({static_cast<unsigned int>(list[i].pid), list[i].bytes});
      return processes;
    }
  }
  if (TheSettings().shared.empty()) return processes;
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [pid, bytes] : SharedBudget::HoldersIn(TheSettings().shared, physical))
    processes.push_back({static_cast<unsigned int>(pid), bytes});
  return processes;
}

bool IsInstance(const std::string& key) { return key.find('/') != std::string::npos; }

}  // namespace

int EnterNvml(const char* call) {
  uint64_t nanoseconds;
  int code;
  {
    std::lock_guard<std::mutex> lock(mutex);
    nanoseconds = Script().LatencyNs(call);
    code = Script().ErrorOf(call);
  }
  if (nanoseconds != 0) {
    const timespec duration = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                               static_cast<long>(nanoseconds % 1'000'000'000)};
    nanosleep(&duration, nullptr);
  }
  return code;
}

bool NvmlHasMachine() {
  const char* script = std::getenv("SIMCUDA_NVML");
  if ((script != nullptr && *script != '\0') || !TheSettings().shared.empty()) return true;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

int NvmlDeviceCount() { return TheSettings().machine_devices; }

std::vector<NvmlScript::Instance> NvmlInstances() {
  std::lock_guard<std::mutex> lock(mutex);
  return Script().instances();
}

NvmlMemory NvmlMemoryOf(const std::string& key) {
  const NvmlScript::Values script = ScriptOf(key, /*is_query=*/true);
  NvmlMemory memory;
  memory.total = script.total.value_or(TheSettings().memory);
  memory.reserved = script.reserved.value_or(0);
  if (script.used) {
    memory.used = *script.used;
    return memory;
  }
  if (!IsInstance(key)) memory.used = TheSettings().foreign;
  for (const NvmlScript::Process& process : NvmlProcessesOf(key))
    memory.used += process.bytes.value_or(0);
  return memory;
}

std::vector<NvmlScript::Process> NvmlProcessesOf(const std::string& key) {
  std::vector<NvmlScript::Process> processes;
  if (!IsInstance(key)) processes = Holders(std::atoi(key.c_str()));
  for (const NvmlScript::Process& process : ScriptOf(key, /*is_query=*/false).processes)
    processes.push_back(process);
  return processes;
}

std::pair<int, int> NvmlComputeCapability() {
  return {TheSettings().compute_major, TheSettings().compute_minor};
}

}  // namespace sim
