// tests/evaluate/ledger/machine.h
//
// Machine: a made-up GPU with a made-up process on it, which knows who has each byte because it gave it
// out. It writes down what a recording of the process would have: the process's calls, and readings of
// the driver that lag behind them as real ones do.
//
// Thread safety: one thread.

#ifndef GMT_TESTS_EVALUATE_LEDGER_MACHINE_H_
#define GMT_TESTS_EVALUATE_LEDGER_MACHINE_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::evaluate {

// What the driver tells, and to whom.
enum class Told {
  kProcesses,        // NVML, each process; and CUPTI tells of code that is loaded
  kProcessesNoCode,  // NVML, each process
  kListWithoutUs,    // NVML, from inside a container: our number is not in its list
  kTogether,         // the program's own cudaMemGetInfo
};
inline constexpr int kKinds = 4;
const char* NameOf(Told told);

// Who has the bytes of the device, behind one event.
struct Truth {
  uint64_t live = 0, cached = 0, holes = 0;
  std::map<std::string, uint64_t> libraries;  // "other allocations" among them
  uint64_t cupti = 0;
  uint64_t standing = 0;                // contexts and code
  uint64_t lost = 0;                    // what the driver holds and no event says
  std::map<uint64_t, uint64_t> others;  // by pid
  uint64_t system = 0;

  uint64_t ours() const;
  uint64_t used() const;
};

struct MachineRun {
  Told told = Told::kProcesses;
  analysis::EventScript script;
  std::vector<Truth> truths;         // [i]: behind i allocations and frees
  std::vector<uint32_t> readings;    // steps at which a reading was written
  uint32_t lost_since = UINT32_MAX;  // step at which memory was lost; UINT32_MAX: never
  uint32_t warm_since = 0;           // step from which on nothing is loaded unseen
};

MachineRun RunMachine(uint64_t seed);

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEDGER_MACHINE_H_
