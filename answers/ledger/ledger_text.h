// answers/ledger/ledger_text.h
//
// A ledger (analysis/ledger/ledger.h) as text and as JSON.
//
// In the text, rows, sums of groups and "unexplained" add up to the driver's figure, within the
// precision of three digits. Rows that do not fit are summed up in one row.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_LEDGER_LEDGER_TEXT_H_
#define GMT_ANSWERS_LEDGER_LEDGER_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/ledger/ledger.h"
#include "answers/terminal.h"

namespace gmt::answers {

struct LedgerSource {
  std::string file;  // as named by the user
  std::vector<std::string> lacks;
  bool is_imported = false;  // no driver was queried
  bool is_live = false;      // of a running process
};

// Returns the table of the device with the most memory in use, and a line for each other device.
// `top`: number of rows outside of the framework's; 0: as many as fit a screen.
std::string LedgerText(const std::vector<analysis::Ledger>& ledgers, const LedgerSource& source,
                       size_t top, const Terminal& terminal);

// Returns JSON, "schema" first. The top-level keys describe the device with the most memory in use;
// "devices" has all.
std::string LedgerJson(const std::vector<analysis::Ledger>& ledgers, const LedgerSource& source);

// Returns the ledger of the device with the most memory in use. REQUIRES: `ledgers` is not empty.
const analysis::Ledger& Fullest(const std::vector<analysis::Ledger>& ledgers);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_LEDGER_LEDGER_TEXT_H_
