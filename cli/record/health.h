// cli/record/health.h
//
// What `gpumemtrace doctor` looks at: whether this machine lets the recording work, and which parts
// of it will be missing. Each check tries the thing itself rather than guessing from versions.
//
// Thread safety: one caller at a time (the GPU check loads the driver into this process).

#ifndef GMT_CLI_RECORD_HEALTH_H_
#define GMT_CLI_RECORD_HEALTH_H_

#include <string>
#include <vector>

namespace gmt::cli {

struct Check {
  enum class State {
    kWorks,
    kWithout,  // recording works, but less well, or less of it
    kFails,    // recording does not work
  };
  std::string name;
  State state = State::kWorks;
  std::string detail;  // what was found; where it does not work, why, and what to do
};

// The name of the check that a recording can be made only if it works.
inline constexpr char kDriverCheck[] = "GPU driver";

// "works", "without", "fails".
const char* StateName(Check::State state);

std::vector<Check> CheckHealth();

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_HEALTH_H_
