// cli/description.h
//
// What the program accepts, as data: the source of completions and of manual pages. It is derived
// from what the verbs have declared (cli/command.h).

#ifndef GMT_CLI_DESCRIPTION_H_
#define GMT_CLI_DESCRIPTION_H_

#include <string>
#include <vector>

namespace gmt::cli {

struct OptionDescription {
  std::vector<std::string> names;  // "-o", "--output"; empty for an argument
  std::string value;               // "FILE"; empty for a flag and for an option with choices
  std::string help;
  std::vector<std::string> choices;  // values to offer; all that are accepted if `value` is empty
  bool is_required = false;
  bool repeats = false;
  bool is_common = false;  // every verb has it

  bool takes_value() const { return !value.empty() || !choices.empty(); }
};

struct VerbDescription {
  std::string name, summary, footer;
  std::vector<OptionDescription> arguments, options;
  bool takes_command = false;  // the command line of another program follows its options
};

struct ProgramDescription {
  std::string summary, version;
  std::vector<OptionDescription> options;
  std::vector<VerbDescription> verbs;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_DESCRIPTION_H_
