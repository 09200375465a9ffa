// cli/view_backend.h
//
// What the page needs from this directory: recordings loaded as reading verbs load them, and
// answers as they print them.
//
// Thread safety: the functions may be called from several threads for different recordings.

#ifndef GMT_CLI_VIEW_BACKEND_H_
#define GMT_CLI_VIEW_BACKEND_H_

#include "viewer/server/recording.h"

namespace gmt::cli {

viewer::Backend MakeViewBackend();

}  // namespace gmt::cli

#endif  // GMT_CLI_VIEW_BACKEND_H_
