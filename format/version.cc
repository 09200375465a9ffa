#include "format/version.h"

namespace gmt::format {

std::string_view ToolVersion() { return GMT_VERSION; }

}  // namespace gmt::format
