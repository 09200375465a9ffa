// analysis/text.h
//
// Formats numbers for people, in all text of the program and on the page: binary units and at most
// three significant digits. JSON never uses these; it carries integers (bytes, nanoseconds).
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_TEXT_H_
#define GMT_ANALYSIS_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace gmt {

// "0 B", "512 B", "3.42 GiB", "61.3 MiB", "117 KiB".
std::string Bytes(uint64_t bytes);

// A difference: "+3.42 GiB", "-512 B", "0 B".
std::string SignedBytes(int64_t bytes);

// part / whole in whole percent: "61 %"; "<1 %" if small but not zero; "-" if whole is 0.
std::string Percent(double part, double whole);

// "900 ns", "12.4 us", "7.66 s", "6 h 12 m", "3 d 4 h".
std::string Duration(int64_t ns);

// With thousands separators: "8,391,204".
std::string Count(uint64_t count);

// "1 event", "2 events"; forms the plural by appending "s".
std::string Plural(uint64_t count, const char* singular);

// Cuts to at most `columns` characters, the last three of them dots if something was cut off. Does
// not cut inside a UTF-8 character or a number: "optimizer +34.1 MiB" becomes "optimizer...", not
// "optimizer +34...".
std::string Shortened(const std::string& text, size_t columns);

// Breaks a sentence between words into lines of at most `columns` characters, but not after a
// number, which belongs to its unit. Lines after the first begin with `indent`. A longer word stays
// whole, so nothing is lost.
std::string Wrapped(const std::string& text, size_t columns, const std::string& indent);

// "0x7f5c00000000".
std::string Address(uint64_t address);

}  // namespace gmt

#endif  // GMT_ANALYSIS_TEXT_H_
