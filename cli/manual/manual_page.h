// cli/manual/manual_page.h
//
// Manual pages in the language of man(7), made of the program's description.

#ifndef GMT_CLI_MANUAL_MANUAL_PAGE_H_
#define GMT_CLI_MANUAL_MANUAL_PAGE_H_

#include <string>

#include "cli/description.h"

namespace gmt::cli {

// Returns gpumemtrace(1). `date` is that of the page: "2026-11-27".
std::string ProgramPage(const ProgramDescription& program, const std::string& date);
// Returns gpumemtrace-VERB(1).
std::string VerbPage(const ProgramDescription& program, const VerbDescription& verb,
                     const std::string& date);

}  // namespace gmt::cli

#endif  // GMT_CLI_MANUAL_MANUAL_PAGE_H_
