// cli/source_line.h
//
// Imports the functions for source lines (analysis/source_line.h) into this namespace.

#ifndef GMT_CLI_SOURCE_LINE_H_
#define GMT_CLI_SOURCE_LINE_H_

#include "analysis/source_line.h"

namespace gmt::cli {

using analysis::SourceLines;

}  // namespace gmt::cli

#endif  // GMT_CLI_SOURCE_LINE_H_
