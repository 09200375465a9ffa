// cli/command.h
//
// How a verb is added to the program. A verb is one file that exports one function, which is listed
// in cli/verbs.h:
//
//   struct Options { std::string file; int64_t top = 20; };
//
//   absl::StatusOr<int> Report(const Options& options, const Terminal& terminal);
//
//   void AddReport(Program& program) {
//     auto options = std::make_shared<Options>();
//     Command command = program.AddVerb(
//         "report", "Show what holds the memory",
//         [options](const Terminal& terminal) { return Report(*options, terminal); });
//     command.Argument("FILE", &options->file, "recording");
//     command.Option("--top", &options->top, "N", "how many rows");
//   }
//
// The verb returns its exit code, or a status whose message says what failed, where, and which
// command fixes it. The program prints it as "gpumemtrace: MESSAGE" and exits with 1, or 2 for a
// UsageError.
//
// Only command.cc includes the argument parser's header, because it takes seconds to compile.

#ifndef GMT_CLI_COMMAND_H_
#define GMT_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/description.h"
#include "cli/terminal.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gmt::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,      // the verb failed; the message is on stderr
  kWrongUsage = 2,  // unknown verb, option or value
  kGateFailed = 3,  // a condition such as --fail-above is violated
};

// Returns a status that ends the program with kWrongUsage. For errors that the parser cannot
// detect, such as values that contradict each other.
absl::Status UsageError(absl::string_view message);

// The options of one verb. Every `value` must live until the verb has run; its initial value is the
// default. `names` is "-o,--output" or "--json".
class Command {
 public:
  void Argument(const std::string& name, std::string* value, const std::string& help);
  void OptionalArgument(const std::string& name, std::string* value, const std::string& help);
  // Requires one or more values.
  void Arguments(const std::string& name, std::vector<std::string>* values,
                 const std::string& help);

  // Accepts zero or more values.
  void OptionalArguments(const std::string& name, std::vector<std::string>* values,
                         const std::string& help);

  void Flag(const std::string& names, bool* value, const std::string& help);
  void Option(const std::string& names, std::string* value, const std::string& placeholder,
              const std::string& help);
  void Option(const std::string& names, int64_t* value, const std::string& placeholder,
              const std::string& help);
  void Option(const std::string& names, double* value, const std::string& placeholder,
              const std::string& help);
  // The option may be given several times.
  void Option(const std::string& names, std::vector<std::string>* values,
              const std::string& placeholder, const std::string& help);
  void Choice(const std::string& names, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  // "--device N": the number of a GPU.
  void DeviceOption(std::optional<int32_t>* value, const std::string& help);
  void RequiredOption(const std::string& names, std::string* value, const std::string& placeholder,
                      const std::string& help);

  // The command line of another program: everything after "--", or from the first word that is not
  // an option.
  void CommandLine(std::vector<std::string>* words);
  // Everything after "--", which is not parsed.
  void AfterDashes(std::vector<std::string>* words);

  // Values that completion offers for an option or argument that accepts others too.
  void Suggest(const std::string& name, std::vector<std::string> values);
  // Another name of the verb, which the help does not list.
  void Alias(const std::string& name);
  // Is printed at the end of the verb's help.
  void Footer(const std::string& text);

 private:
  friend class Program;
  using Choices = std::map<const CLI::Option*, std::vector<std::string>>;
  Command(CLI::App* app, std::vector<std::string>** rest, Choices* choices)
      : app_(app), rest_(rest), choices_(choices) {}
  CLI::App* app_;
  std::vector<std::string>** rest_;
  Choices* choices_;
};

using VerbFunction = std::function<absl::StatusOr<int>(const Terminal&)>;

// The program: verbs, common options, errors and exit codes.
class Program {
 public:
  Program();
  ~Program();

  Command AddVerb(const std::string& name, const std::string& summary, VerbFunction function);

  // Parses the arguments, runs one verb and returns the exit code of the process.
  int Run(int argc, const char* const* argv);

  // Returns the verbs that have been added, with their options.
  ProgramDescription Describe() const;

 private:
  struct Verb;
  Verb* FindVerb(const std::string& name) const;
  static std::vector<std::string> TakeAfterDashes(const Verb* verb,
                                                  std::vector<std::string>* words);
  std::optional<int> Parse(const Verb* verb, std::vector<std::string> words);
  static bool TakeCommandLine(const Verb& verb, const std::vector<std::string>& after_dashes);
  int RunVerb(const Verb& verb) const;

  std::unique_ptr<CLI::App> app_;
  Command::Choices choices_;
  std::vector<std::unique_ptr<Verb>> verbs_;
  TerminalOptions terminal_options_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_COMMAND_H_
