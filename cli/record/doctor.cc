// gpumemtrace doctor: checks what works on this machine, and prints what to type next there.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/record/health.h"
#include "cli/record/next_step.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

using State = Check::State;

void PrintChecksAsJson(const std::vector<Check>& checks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    rows.push_back(
        {{"name", check.name}, {"state", StateName(check.state)}, {"detail", check.detail}});
  }
  const nlohmann::ordered_json out = {{"schema", "gpumemtrace.doctor/1"},
                                      {"checks", rows},
                                      {"next", NextStep(checks, FindCommands())}};
  fmt::print("{}\n", out.dump(2));
}

std::string Mark(State state, const Terminal& terminal) {
  switch (state) {
    case State::kWorks:
      return terminal.Green("works  ");
    case State::kWithout:
      return terminal.Yellow("limited");
    case State::kFails:
      return terminal.Red("fails  ");
  }
  return "";
}

void PrintText(const std::vector<Check>& checks, size_t failing, const Terminal& terminal) {
  const bool has_driver = std::none_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.name == kDriverCheck && check.state != State::kWorks;
  });
  fmt::print(
      "{}\n\n",
      terminal.Bold(failing > 0  ? "Recording does not work on this machine."
                    : has_driver ? "Recording works on this machine."
                                 : "This machine can read recordings but not make them: it has "
                                   "no working GPU driver."));
  for (const Check& check : checks) {
    fmt::print("{}  {:<14}  {}\n", Mark(check.state, terminal), check.name, check.detail);
  }
  fmt::print("\nNext: {}\n", NextStep(checks, FindCommands()));
}

int Doctor(bool json, const Terminal& terminal) {
  const std::vector<Check> checks = CheckHealth();
  size_t failing = 0;
  for (const Check& check : checks) failing += check.state == State::kFails;
  if (json) {
    PrintChecksAsJson(checks);
  } else {
    PrintText(checks, failing, terminal);
  }
  return failing == 0 ? kDone : kFailed;
}

}  // namespace

void AddDoctor(Program& program) {
  auto json = std::make_shared<bool>(false);
  Command command = program.AddVerb(
      "doctor", "Check what works on this machine, and say what to type next",
      [json](const Terminal& terminal) { return absl::StatusOr<int>(Doctor(*json, terminal)); });
  command.Flag("--json", json.get(), "print JSON");
}

}  // namespace gmt::cli
