// tests/evaluate/oom/oom_cases.h
//
// Programs that run out of memory for a reason that is known, because it was put there: a device
// filled by one cause, and everything else small. Each class has several ways to come about.
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
  std::string kind;          // the way in which it came about
  uint64_t cause_bytes = 0;  // of the cause; 0: it has none
  uint64_t cap_bytes = 0;    // of kCap: the limit
};

// The classes in turn, by seed; fills the script.
OomCase MakeOomCase(uint64_t seed, analysis::EventScript& script);

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_OOM_OOM_CASES_H_
