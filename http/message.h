// http/message.h
//
// HTTP as request handlers see it: a GET without a body, and its response.
//
// Thread safety: plain data and pure functions.

#ifndef GMT_HTTP_MESSAGE_H_
#define GMT_HTTP_MESSAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmt::http {

struct Request {
  std::string path;                                          // as sent, from the first '/'
  std::string query;                                         // after '?', as sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // Returns the value of a header, or null if it was not sent. `name` must be in lower case.
  const std::string* Header(absl::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // The answer does not end with the body: the connection stays open for more of it.
  bool is_stream = false;
};

// Returns a response of plain text: the sentence and a line feed.
Response TextResponse(int status, absl::string_view sentence);

// Sets path and query from `target`, the path and query as sent. Returns whether the request is
// well-formed; otherwise the target has another form, a header is ambiguous, or there is a body.
bool ReadTarget(absl::string_view target, Request& request);

// Adds the headers that every response carries, unless it has them: nothing is stored, and a page
// from elsewhere can neither frame a response nor use it as a part of itself.
void AddProtection(Response& response);

}  // namespace gmt::http

#endif  // GMT_HTTP_MESSAGE_H_
