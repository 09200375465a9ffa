// tests/evaluate/oom/oom_cases.h
//
// Programs that run out of memory for a planted reason: one cause fills the device, everything else
// is small. Each class has several scenarios.
//
// Thread safety: pure function.

#ifndef GMT_TESTS_EVALUATE_OOM_OOM_CASES_H_
#define GMT_TESTS_EVALUATE_OOM_OOM_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/oom/oom.h"
#include "analysis/testing/event_script.h"

namespace gmt::evaluate {

struct OomCase {
  analysis::OomVerdict truth = analysis::OomVerdict::kNone;
  std::string kind;          // the scenario
  uint64_t cause_bytes = 0;  // bytes of the cause; 0 if it has none
  uint64_t cap_bytes = 0;    // the limit, for kCap
};

// Fills `script` with a case. Successive seeds cycle through the classes.
OomCase MakeOomCase(uint64_t seed, analysis::EventScript& script);

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_OOM_OOM_CASES_H_
