// viewer/server/error_response.h
//
// Errors as the page reads them.
//
// Thread safety: pure function.

#ifndef GMT_VIEWER_SERVER_ERROR_RESPONSE_H_
#define GMT_VIEWER_SERVER_ERROR_RESPONSE_H_

#include "absl/strings/string_view.h"
#include "http/message.h"

namespace gmt::viewer {

// Returns a response with the body {"error": sentence}.
http::Response ErrorResponse(int status, absl::string_view sentence);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_ERROR_RESPONSE_H_
