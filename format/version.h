// format/version.h
//
// The version of gpumemtrace, as stated in recordings and by `--version`.

#ifndef GMT_FORMAT_VERSION_H_
#define GMT_FORMAT_VERSION_H_

#include <string_view>

namespace gmt::format {

// "1.2.3".
std::string_view ToolVersion();

}  // namespace gmt::format

#endif  // GMT_FORMAT_VERSION_H_
