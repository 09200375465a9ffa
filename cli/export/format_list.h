// cli/export/format_list.h
//
// `export --list`: what each format keeps of a recording, and what it drops.
//
// Thread safety: pure functions, except that they print.

#ifndef GMT_CLI_EXPORT_FORMAT_LIST_H_
#define GMT_CLI_EXPORT_FORMAT_LIST_H_

namespace gmt::cli {

void PrintFormats();
void PrintFormatsAsJson();

}  // namespace gmt::cli

#endif  // GMT_CLI_EXPORT_FORMAT_LIST_H_
