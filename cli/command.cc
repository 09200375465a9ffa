#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "format/version.h"

namespace gmt::cli {
namespace {

constexpr char kUsagePayload[] = "gpumemtrace/usage";

// Prints a wrong-usage message and names the help command. Returns kWrongUsage.
int ReportWrongUsage(const std::string& message, const std::string& verb) {
  PrintNote(fmt::format("{}\nSee: gpumemtrace {}{}--help", message, verb, verb.empty() ? "" : " "));
  return kWrongUsage;
}

// Returns `code` if everything printed to stdout arrived, otherwise kFailed: a report that did not
// reach the disk is a failure.
int Flushed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  PrintNote(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  return kFailed;
}

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

constexpr char kCommonOptions[] = "Common options";

OptionDescription DescribeOption(
    const CLI::Option& option, const std::map<const CLI::Option*, std::vector<std::string>>& all) {
  OptionDescription description;
  if (option.get_positional()) {
    description.value = option.get_name(true);
  } else {
    for (const std::string& name : option.get_snames()) description.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) description.names.push_back("--" + name);
    // The parser appends what a value is checked for.
    const std::string type = option.get_type_name();
    if (option.get_items_expected_max() > 0) description.value = type.substr(0, type.find(':'));
  }
  description.help = option.get_description();
  if (const auto found = all.find(&option); found != all.end()) description.choices = found->second;
  description.is_required = option.get_required();
  description.repeats = option.get_items_expected_max() > 1;
  description.is_common = option.get_group() == kCommonOptions;
  return description;
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

// ---- Command ------------------------------------------------------------------------------------

void Command::Argument(const std::string& name, std::string* value, const std::string& help) {
  app_->add_option(name, *value, help)->required()->type_name("");
}

void Command::OptionalArgument(const std::string& name, std::string* value,
                               const std::string& help) {
  app_->add_option(name, *value, help)->type_name("");
}

void Command::Arguments(const std::string& name, std::vector<std::string>* values,
                        const std::string& help) {
  app_->add_option(name, *values, help)->required()->type_name("");
}

void Command::OptionalArguments(const std::string& name, std::vector<std::string>* values,
                                const std::string& help) {
  app_->add_option(name, *values, help)->type_name("");
}

void Command::Flag(const std::string& names, bool* value, const std::string& help) {
  app_->add_flag(names, *value, help);
}

void Command::Option(const std::string& names, std::string* value, const std::string& placeholder,
                     const std::string& help) {
  app_->add_option(names, *value, help)->type_name(placeholder);
}

void Command::Option(const std::string& names, int64_t* value, const std::string& placeholder,
                     const std::string& help) {
  app_->add_option(names, *value, help)->type_name(placeholder);
}

void Command::DeviceOption(std::optional<int32_t>* value, const std::string& help) {
  app_->add_option("--device", *value, help)->type_name("N")->check([](const std::string& text) {
    int32_t number = 0;
    const bool is_number = absl::SimpleAtoi(text, &number) && number >= 0;
    return is_number ? "" : fmt::format("'{}' is not the number of a GPU, such as 0", text);
  });
}

void Command::Option(const std::string& names, double* value, const std::string& placeholder,
                     const std::string& help) {
  app_->add_option(names, *value, help)->type_name(placeholder);
}

void Command::Option(const std::string& names, std::vector<std::string>* values,
                     const std::string& placeholder, const std::string& help) {
  app_->add_option(names, *values, help)->type_name(placeholder)->allow_extra_args(false);
}

void Command::Choice(const std::string& names, std::string* value,
                     const std::vector<std::string>& choices, const std::string& help) {
  (*choices_)[app_->add_option(names, *value, help)->check(CLI::IsMember(choices))->type_name("")] =
      choices;
}

void Command::RequiredOption(const std::string& names, std::string* value,
                             const std::string& placeholder, const std::string& help) {
  app_->add_option(names, *value, help)->type_name(placeholder)->required();
}

void Command::CommandLine(std::vector<std::string>* words) {
  *rest_ = words;
  app_->prefix_command();
  app_->footer("\nThe command follows its own options: gpumemtrace " + app_->get_name() +
               " [OPTIONS] -- COMMAND...");
}

void Command::AfterDashes(std::vector<std::string>* words) { *rest_ = words; }

void Command::Suggest(const std::string& name, std::vector<std::string> values) {
  (*choices_)[app_->get_option(name)] = std::move(values);
}

void Command::Alias(const std::string& name) { app_->alias(name); }

void Command::Footer(const std::string& text) { app_->footer("\n" + text); }

// ---- Program ------------------------------------------------------------------------------------

struct Program::Verb {
  std::string name;
  CLI::App* app = nullptr;
  VerbFunction function;
  std::vector<std::string>* rest = nullptr;
};

Program::Program()
    : app_(std::make_unique<CLI::App>("Records and explains GPU memory.", "gpumemtrace")) {
  app_->set_version_flag("--version", fmt::format("gpumemtrace {}", format::ToolVersion()),
                         "Print the version and exit");
  app_->set_help_flag("-h,--help", "Print this help and exit");
  app_->require_subcommand(0, 1);  // an argument may be the name of another verb
}

Program::~Program() = default;

Command Program::AddVerb(const std::string& name, const std::string& summary,
                         VerbFunction function) {
  verbs_.push_back(std::make_unique<Verb>());
  Verb& verb = *verbs_.back();
  verb.name = name;
  verb.function = std::move(function);
  verb.app = app_->add_subcommand(name, summary);
  const std::vector<std::string> when = {"auto", "always", "never"};
  choices_[verb.app->add_option("--color", terminal_options_.color, "auto, always or never")
               ->check(CLI::IsMember(when))
               ->type_name("WHEN")
               ->group(kCommonOptions)] = when;
  verb.app->add_option("--width", terminal_options_.width, "columns of text output")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->type_name("N")
      ->group(kCommonOptions);
  return Command(verb.app, &verb.rest, &choices_);
}

ProgramDescription Program::Describe() const {
  ProgramDescription program;
  program.summary = app_->get_description();
  program.version = format::ToolVersion();
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    program.options.push_back(DescribeOption(*option, choices_));
  for (const std::unique_ptr<Verb>& verb : verbs_) {
    const CLI::App& app = *verb->app;
    VerbDescription description;
    description.name = verb->name;
    description.summary = app.get_description();
    description.footer = app.get_footer();
    description.takes_command = app.get_prefix_command();
    for (const CLI::Option* option : app.get_options()) {
      (option->get_positional() ? description.arguments : description.options)
          .push_back(DescribeOption(*option, choices_));
    }
    program.verbs.push_back(std::move(description));
  }
  return program;
}

int Program::Run(int argc, const char* const* argv) {
  // The footer is set here and not in the constructor, so that verbs do not inherit it.
  app_->footer("`gpumemtrace VERB --help` explains one verb.");
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) return ReportWrongUsage("a verb is missing", "");
  Verb* verb = FindVerb(words[0]);
  if (verb == nullptr && !IsOption(words[0])) {
    return ReportWrongUsage(fmt::format("there is no verb '{}'", words[0]), "");
  }
  const std::vector<std::string> after_dashes = TakeAfterDashes(verb, &words);
  try {
    const std::optional<int> code = Parse(verb, std::move(words));
    if (code.has_value()) return Flushed(*code);
    if (verb->rest != nullptr && !TakeCommandLine(*verb, after_dashes)) return kWrongUsage;
    return RunVerb(*verb);
  } catch (const std::exception& error) {  // from a library, or if stdout is on a full disk
    PrintNote(error.what());
    return kFailed;
  }
}

Program::Verb* Program::FindVerb(const std::string& name) const {
  for (const std::unique_ptr<Verb>& verb : verbs_) {
    if (verb->app->check_name(name)) return verb.get();
  }
  return nullptr;
}

// Removes and returns everything from the first "--" on, so that the parser does not see the
// options of another program.
std::vector<std::string> Program::TakeAfterDashes(const Verb* verb,
                                                  std::vector<std::string>* words) {
  if (verb == nullptr || verb->rest == nullptr) return {};
  const auto dashes = std::find(words->begin(), words->end(), "--");
  std::vector<std::string> behind(dashes, words->end());
  words->erase(dashes, words->end());
  return behind;
}

// Returns the exit code if there is nothing to run: help was printed, or the usage was wrong.
std::optional<int> Program::Parse(const Verb* verb, std::vector<std::string> words) {
  const std::string name = verb == nullptr ? "" : verb->name;
  try {
    std::reverse(words.begin(), words.end());  // the parser takes them from the back
    app_->parse(words);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", verb == nullptr ? app_->help() : verb->app->help("gpumemtrace"));
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kDone;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app_->remaining(true);
    const std::string word = extras.empty() ? "" : extras.front();
    const char* problem = IsOption(word) ? "there is no option" : "unexpected argument";
    return ReportWrongUsage(fmt::format("{} '{}'", problem, word), name);
  } catch (const CLI::ParseError& error) {
    return ReportWrongUsage(error.what(), name);
  }
}

// The first "--" ends our options. Another one belongs to the command.
bool Program::TakeCommandLine(const Verb& verb, const std::vector<std::string>& after_dashes) {
  std::vector<std::string>& words = *verb.rest;
  words = verb.app->remaining();
  if (!words.empty() && IsOption(words.front())) {
    ReportWrongUsage(fmt::format("there is no option '{}'", words.front()), verb.name);
    return false;
  }
  const bool is_ours = words.empty() && !after_dashes.empty();
  words.insert(words.end(), after_dashes.begin() + (is_ours ? 1 : 0), after_dashes.end());
  return true;
}

int Program::RunVerb(const Verb& verb) const {
  const absl::StatusOr<int> result = verb.function(DetectTerminal(terminal_options_));
  if (result.ok()) return Flushed(*result);
  std::fflush(stdout);
  const std::string message(result.status().message());
  if (result.status().GetPayload(kUsagePayload).has_value()) {
    return ReportWrongUsage(message, verb.name);
  }
  PrintNote(message);
  return kFailed;
}

}  // namespace gmt::cli
