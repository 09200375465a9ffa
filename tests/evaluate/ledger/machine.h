// tests/evaluate/ledger/machine.h
//
// Machine: a synthetic GPU with a synthetic process, which knows the owner of each byte. It writes
// a recording of the process: its calls, and readings of the driver that lag behind them like real
// ones.
//
// Not thread-safe.

#ifndef GMT_TESTS_EVALUATE_LEDGER_MACHINE_H_
#define GMT_TESTS_EVALUATE_LEDGER_MACHINE_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::evaluate {

// The source of the readings.
enum class Source {
  kProcesses,        // NVML with each process, and CUPTI's events for loaded code
  kProcessesNoCode,  // NVML with each process
  kListWithoutUs,    // NVML inside a container: its list does not have our pid
  kTogether,         // the program's own cudaMemGetInfo
};
inline constexpr int kKinds = 4;
const char* NameOf(Source source);

// The owners of the device's bytes after one event.
struct Truth {
  uint64_t live = 0, cached = 0, holes = 0;
  std::map<std::string, uint64_t> libraries;  // "other allocations" among them
  uint64_t cupti = 0;
  uint64_t standing = 0;                // contexts and code
  uint64_t lost = 0;                    // used by the driver without an event
  std::map<uint64_t, uint64_t> others;  // by pid
  uint64_t system = 0;

  uint64_t ours() const;
  uint64_t used() const;
};

struct MachineRun {
  Source source = Source::kProcesses;
  analysis::EventScript script;
  std::vector<Truth> truths;         // [i]: after i allocations and frees
  std::vector<uint32_t> readings;    // steps at which a reading was written
  uint32_t lost_since = UINT32_MAX;  // step at which memory was lost; UINT32_MAX: never
  uint32_t warm_since = 0;           // step after which no code is loaded without an event
};

MachineRun RunMachine(uint64_t seed);

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEDGER_MACHINE_H_
