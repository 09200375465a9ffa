// cli/text.h
//
// Imports the functions that format numbers for people (analysis/text.h) into this namespace.

#ifndef GMT_CLI_TEXT_H_
#define GMT_CLI_TEXT_H_

#include "analysis/text.h"

namespace gmt::cli {

using analysis::Address;
using analysis::Bytes;
using analysis::Count;
using analysis::Duration;
using analysis::Percent;
using analysis::Plural;
using analysis::Shortened;
using analysis::SignedBytes;

}  // namespace gmt::cli

#endif  // GMT_CLI_TEXT_H_
