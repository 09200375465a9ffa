// cli/completion/scripts.h
//
// The scripts that shells load, as they are in this directory.

#ifndef GMT_CLI_COMPLETION_SCRIPTS_H_
#define GMT_CLI_COMPLETION_SCRIPTS_H_

#include <string_view>

namespace gmt::cli {

std::string_view BashCompletion();
std::string_view ZshCompletion();
std::string_view FishCompletion();

}  // namespace gmt::cli

#endif  // GMT_CLI_COMPLETION_SCRIPTS_H_
