// viewer/server/http_message.h
//
// HTTP as request handlers see it: a GET without a body, and its response.
//
// Thread safety: plain data and pure functions.

#ifndef GMT_VIEWER_SERVER_HTTP_MESSAGE_H_
#define GMT_VIEWER_SERVER_HTTP_MESSAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmt::viewer {

struct Request {
  std::string path;                                          // as sent, from the first '/'
  std::string query;                                         // after '?', as sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // Returns the value of a header, or null if it was not sent. `name` must be in lower case.
  const std::string* Header(absl::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Server-sent events: `body` is the first of them, and the connection stays open.
  bool is_stream = false;
};

// Returns a response with the body {"error": sentence}.
Response ErrorResponse(int status, absl::string_view sentence);

// Sets path and query from `target`, the path and query as sent. Returns the status of what is
// wrong with the request: a target of another form, a duplicate header, or a body. Returns 0 if it
// is valid.
int CheckRequest(absl::string_view target, Request& request);

// Returns the reason phrase of a status, such as "Not Found".
const char* ReasonOf(int status);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_HTTP_MESSAGE_H_
