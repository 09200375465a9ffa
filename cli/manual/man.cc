// gpumemtrace man: prints a manual page.

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/manual/manual_page.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

// Returns today's date, or that of $SOURCE_DATE_EPOCH, with which packages are built reproducibly.
std::string DateOfPage() {
  std::time_t seconds = std::time(nullptr);
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (int64_t given; epoch != nullptr && absl::SimpleAtoi(epoch, &given)) seconds = given;
  std::tm date = {};
  gmtime_r(&seconds, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

absl::StatusOr<int> PrintPage(const std::string& name, const ProgramDescription& program) {
  if (name.empty()) {
    fmt::print("{}", ProgramPage(program, DateOfPage()));
    return kDone;
  }
  for (const VerbDescription& verb : program.verbs) {
    if (verb.name != name) continue;
    fmt::print("{}", VerbPage(program, verb, DateOfPage()));
    return kDone;
  }
  return UsageError(absl::StrCat("there is no verb '", name, "'"));
}

}  // namespace

void AddMan(Program& program) {
  auto verb = std::make_shared<std::string>();
  Command command = program.AddVerb(
      "man", "Print a manual page",
      [verb, &program](const Terminal&) { return PrintPage(*verb, program.Describe()); });
  command.OptionalArgument("VERB", verb.get(),
                           "the verb that the page describes (default: the program)");
  command.Footer("To read it: gpumemtrace man report | man -l -");
}

}  // namespace gmt::cli
