// NvmlScript: what SIMCUDA_NVML=FILE makes NVML report in addition to the simulated machine. One
// statement per line; `#` begins a comment:
//
//   device 0 total=24G reserved=300M              sizes of the machine's device 0
//   device 0 process=12:2G process=13:-           processes beside the real ones; -: unknown size
//   device 0 from=5 used=9G                       from the 5th query of its memory on
//   device 0/1 uuid=MIG-... total=10G used=1G     an instance of device 0 (MIG)
//   error nvmlDeviceGetMemoryInfo_v2 3            the call returns 3
//   error nvmlInit_v2 9 times=2                   the first two calls return 9
//   latency nvmlDeviceGetMemoryInfo_v2 300ms      the call takes that long; `latency * 1ms`: all
//                                                 calls
//
// If `used` is not given, it is the total of the processes.
//
// Thread safety: callers hold a lock.
#ifndef TESTS_SIMCUDA_NVML_SCRIPT_H_
#define TESTS_SIMCUDA_NVML_SCRIPT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sim {

class NvmlScript {
 public:
  struct Process {
    unsigned int pid = 0;
    std::optional<uint64_t> bytes;
  };
  // The values given for one device or instance; later lines add and replace.
  struct Values {
    std::optional<uint64_t> total, used, reserved;
    std::vector<Process> processes;
  };
  struct Instance {
    int device = 0;
    std::string uuid;
    std::string key;  // "0/1"
  };

  // Reads a file. Invalid lines are reported on standard error.
  explicit NvmlScript(const std::string& path);
  NvmlScript() = default;
  void Parse(const std::string& text);

  // Returns the values of "0" or "0/1" at the `query`th query (from 1).
  Values At(const std::string& key, uint64_t query) const;
  const std::vector<Instance>& instances() const { return instances_; }

  // Counts the call. Returns its error code; 0: carry it out.
  int ErrorOf(const std::string& call);
  uint64_t LatencyNs(const std::string& call) const;

 private:
  struct Line {
    std::string key;
    uint64_t from = 1;
    Values values;
  };
  struct Error {
    int code = 0;
    uint64_t times = ~uint64_t{0}, calls = 0;
  };

  bool ParseDevice(const std::vector<std::string>& words);
  bool ParseError(const std::vector<std::string>& words);
  bool ParseLine(const std::vector<std::string>& words);

  std::vector<Line> lines_;
  std::vector<Instance> instances_;
  std::map<std::string, Error> errors_;
  std::map<std::string, uint64_t> latencies_;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_NVML_SCRIPT_H_
