// cli/command.h
//
// How a verb joins the program. A verb is one file that exports one function, listed in
// cli/verbs.h:
//
//   struct Options { std::string file; int64_t top = 20; };
//
//   absl::StatusOr<int> Report(const Options& options, const Terminal& terminal);
//
//   void AddReport(Program& program) {
//     auto options = std::make_shared<Options>();
//     Command command = program.AddVerb(
//         "report", "What holds the memory",
//         [options](const Terminal& terminal) { return Report(*options, terminal); });
//     command.Argument("FILE", &options->file, "recording");
//     command.Option("--top", &options->top, "N", "how many rows");
//   }
//
// The verb returns its exit code, or a status whose message says what failed, where, and the
// command that mends it; the program prints it as "gpumemtrace: MESSAGE" and exits with 1 (2 for a
// UsageError).
//
// The argument parser's header takes seconds to compile, so it is known to command.cc alone.

#ifndef GMT_CLI_COMMAND_H_
#define GMT_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/terminal.h"

namespace CLI {
class App;
}

namespace gmt::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,      // could not do it; the message is on stderr
  kWrongUsage = 2,  // unknown verb, option or value
  kGateFailed = 3,  // --fail-above and the like: the answer is the failure
};

// A status that ends the program with kWrongUsage, for what the parser cannot see: values that
// contradict each other.
absl::Status UsageError(absl::string_view message);

// The options of one verb. Every `value` must live until the verb has run; what it holds before is
// the default. `names` is "-o,--output" or "--json".
class Command {
 public:
  void Argument(const std::string& name, std::string* value, const std::string& help);
  void OptionalArgument(const std::string& name, std::string* value, const std::string& help);
  // One or more.
  void Arguments(const std::string& name, std::vector<std::string>* values,
                 const std::string& help);

  // None or more.
  void OptionalArguments(const std::string& name, std::vector<std::string>* values,
                         const std::string& help);

  void Flag(const std::string& names, bool* value, const std::string& help);
  void Option(const std::string& names, std::string* value, const std::string& placeholder,
              const std::string& help);
  void Option(const std::string& names, int64_t* value, const std::string& placeholder,
              const std::string& help);
  void Option(const std::string& names, double* value, const std::string& placeholder,
              const std::string& help);
  // May be given several times.
  void Option(const std::string& names, std::vector<std::string>* values,
              const std::string& placeholder, const std::string& help);
  void Choice(const std::string& names, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  void RequiredOption(const std::string& names, std::string* value, const std::string& placeholder,
                      const std::string& help);

  // The command line of another program: everything behind "--", or from the first word that is no
  // option.
  void CommandLine(std::vector<std::string>* words);

 private:
  friend class Program;
  Command(CLI::App* app, std::vector<std::string>** rest) : app_(app), rest_(rest) {}
  CLI::App* app_;
  std::vector<std::string>** rest_;
};

using VerbFunction = std::function<absl::StatusOr<int>(const Terminal&)>;

// The program: verbs, options common to all of them, errors and exit codes.
class Program {
 public:
  Program();
  ~Program();

  Command AddVerb(const std::string& name, const std::string& summary, VerbFunction function);

  // Parses, runs one verb and returns the exit code of the process.
  int Run(int argc, const char* const* argv);

 private:
  struct Verb;
  Verb* FindVerb(const std::string& name) const;
  static std::vector<std::string> TakeBehindDashes(const Verb* verb,
                                                   std::vector<std::string>* words);
  std::optional<int> Parse(const Verb* verb, std::vector<std::string> words);
  static bool TakeCommandLine(const Verb& verb, const std::vector<std::string>& behind_dashes);
  int RunVerb(const Verb& verb) const;

  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Verb>> verbs_;
  TerminalOptions terminal_options_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_COMMAND_H_
