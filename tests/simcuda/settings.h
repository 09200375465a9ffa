// The settings of the simulated device, from SIMCUDA_* environment variables (listed in README.md).
// An unknown or malformed value prints one line on standard error and leaves the default.
#ifndef TESTS_SIMCUDA_SETTINGS_H_
#define TESTS_SIMCUDA_SETTINGS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim {

// Calls that share a latency setting.
enum class CallGroup { kAlloc, kFree, kHost, kMap, kCopy, kLaunch, kSync, kOther, kCount };

// One element of SIMCUDA_FAIL: the `nth` call (from 1) of `call` fails with `code` without effect;
// with `onwards`, so does every later one.
struct FailRule {
  std::string call;
  uint64_t nth = 0;
  bool onwards = false;
  int code = 0;
};

// The behaviour of the simulated CUPTI: it works, or answers as if the driver were too old, or as
// if there were no driver.
enum class CuptiMode { kOn, kOff, kRefuse };

struct Settings {
  static constexpr int kMaxDevices = 8;

  uint64_t memory = uint64_t{24} << 30;  // bytes per device
  int machine_devices = 1;
  // The devices that this process sees, in CUDA's order: physical numbers (device_identity.h).
  std::vector<int> visible = {0};
  int compute_major = 8;
  int compute_minor = 0;
  uint64_t foreign = 0;    // bytes that other processes hold on every device
  uint64_t context = 0;    // bytes that the creation of a context takes
  uint64_t handle = 0;     // bytes that each handle of cuBLAS and cuDNN takes
  uint64_t workspace = 0;  // bytes of workspace that each operation of cuDNN requests
  std::array<uint64_t, static_cast<size_t>(CallGroup::kCount)> latency_ns{};
  std::vector<FailRule> failures;
  uint64_t kernel_time_ns = 0;  // duration of each kernel
  uint64_t bandwidth = 0;       // bytes per second of copies and memsets; 0: they take no time
  bool virtual_clock = false;   // waits of the host set the clock forward
  bool log_streams = false;     // stream calls are logged too
  uint64_t lag = 0;             // number of launches that count as unfinished
  uint64_t scatter = 0;         // seed of the addresses of allocations; 0: the lowest free ones
  uint64_t data = 0;            // copies and memsets of at most this many bytes are carried out
  CuptiMode cupti = CuptiMode::kOn;
  uint64_t cupti_memory = 0;  // device memory that CUPTI takes in each context
  bool cupti_multi = false;   // CUPTI allows several subscribers if all of them agree
  std::string shared;  // file through which processes share the devices' memory; empty: not shared
  std::string log;     // pattern of the truth log's path; empty: no log

  // `lookup` returns the value of a variable, or null; tests pass their own.
  static Settings From(const std::function<const char*(const char*)>& lookup);
  static Settings FromEnvironment();
};

// Parses "24G", "512M", "4096" as bytes. Returns false if `text` is not a size.
bool ParseSize(const std::string& text, uint64_t* bytes);

// Parses "20us", "1ms", "500ns" as nanoseconds. Returns false if `text` is not a duration.
bool ParseDuration(const std::string& text, uint64_t* nanoseconds);

}  // namespace sim

#endif  // TESTS_SIMCUDA_SETTINGS_H_
