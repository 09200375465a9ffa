// cli/record/health.h
//
// The checks of `gpumemtrace doctor`: whether recording works on this machine, and which parts of
// it will be missing. Each check tries the feature itself instead of deducing it from versions.
//
// Thread safety: one caller at a time, because the GPU check loads the driver into this process.

#ifndef GMT_CLI_RECORD_HEALTH_H_
#define GMT_CLI_RECORD_HEALTH_H_

#include <string>
#include <vector>

namespace gmt::cli {

struct Check {
  enum class State {
    kWorks,
    kWithout,  // recording works with limitations
    kFails,    // recording does not work
  };
  std::string name;
  State state = State::kWorks;
  std::string detail;  // what was found; if it does not work, why, and what to do
};

// The name of the check without which this machine cannot make recordings.
inline constexpr char kDriverCheck[] = "GPU driver";

// Returns "works", "without" or "fails".
const char* StateName(Check::State state);

std::vector<Check> CheckHealth();

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_HEALTH_H_
