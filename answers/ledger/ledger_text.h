// answers/ledger/ledger_text.h
//
// A ledger (analysis/ledger/ledger.h) for people and for programs.
//
// In the text rows, sums of groups and "unexplained" add up to the driver's figure, within what three
// digits can hold; rows that there is no room for are one row.
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
  std::string file;  // as the user named it
  std::vector<std::string> lacks;
  bool is_imported = false;  // nobody asked a driver then
  bool is_live = false;      // of a process that runs
};

// The table of the device with most in use, a line for each other one. `top`: rows of the table
// outside of the framework's; 0: as many as fit a screen.
std::string LedgerText(const std::vector<analysis::Ledger>& ledgers, const LedgerSource& source,
                       size_t top, const Terminal& terminal);

// "schema" first. The contract's keys are of the device with most in use; all are in "devices".
std::string LedgerJson(const std::vector<analysis::Ledger>& ledgers, const LedgerSource& source);

// REQUIRES: not empty.
const analysis::Ledger& Fullest(const std::vector<analysis::Ledger>& ledgers);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_LEDGER_LEDGER_TEXT_H_
