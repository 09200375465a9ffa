// cli/source_line.h
//
// The text of source lines, in the program's own namespace (analysis/source_line.h).

#ifndef GMT_CLI_SOURCE_LINE_H_
#define GMT_CLI_SOURCE_LINE_H_

#include "analysis/source_line.h"

namespace gmt::cli {

using analysis::SourceLines;

}  // namespace gmt::cli

#endif  // GMT_CLI_SOURCE_LINE_H_
