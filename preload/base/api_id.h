// preload/base/api_id.h

#ifndef GMT_PRELOAD_BASE_API_ID_H_
#define GMT_PRELOAD_BASE_API_ID_H_

#include <stdint.h>

namespace gmt::preload {

// Number of a hooked function: 1 + its line in the hook table (preload/hooks/hook_table.inc). 0:
// none.
using ApiId = uint16_t;

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_API_ID_H_
