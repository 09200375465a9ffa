// viewer/server/http_message.h
//
// What a handler sees of HTTP: GET without a body, and what is answered.
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
  std::string query;                                         // behind '?', as sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // The value of a header; null where it was not sent. `name` in lower case.
  const std::string* Header(absl::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Server-sent events: `body` is the first of them and the connection stays.
  bool is_stream = false;
};

// {"error": "a sentence"}.
Response ErrorResponse(int status, absl::string_view sentence);

// `target`: path and query as sent. Returns the status of what is wrong with the request, 0 if nothing
// is: a target of another form, a header that must not be there twice, a body.
int CheckRequest(absl::string_view target, Request& request);

// "Not Found".
const char* ReasonOf(int status);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_HTTP_MESSAGE_H_
