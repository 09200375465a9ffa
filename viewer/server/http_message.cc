#include "viewer/server/http_message.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"

namespace gmt::viewer {
namespace {

bool IsVisible(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// With duplicates it would be ambiguous which host is meant or where the next request begins.
bool IsSingle(const Request& request, absl::string_view name) {
  return std::count_if(request.headers.begin(), request.headers.end(),
                       [&](const auto& header) { return header.first == name; }) <= 1;
}

// No query has a body, and a body that is not read would be taken for the next request.
bool HasBody(const Request& request) {
  const std::string* length = request.Header("content-length");
  return request.Header("transfer-encoding") != nullptr || (length != nullptr && *length != "0");
}

}  // namespace

const std::string* Request::Header(absl::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

Response ErrorResponse(int status, absl::string_view sentence) {
  Response response;
  response.status = status;
  response.body = nlohmann::json{{"error", std::string(sentence)}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

int CheckRequest(absl::string_view target, Request& request) {
  if (!absl::StartsWith(target, "/") || !IsVisible(target)) return 400;
  const size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != absl::string_view::npos) request.query = std::string(target.substr(question + 1));
  for (const char* name : {"host", "origin", "content-length"}) {
    if (!IsSingle(request, name)) return 400;
  }
  return HasBody(request) ? 400 : 0;
}

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 421:
      return "Misdirected Request";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

}  // namespace gmt::viewer
