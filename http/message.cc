#include "http/message.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmt::http {
namespace {

bool IsVisible(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// With duplicates it would be ambiguous which host or token is meant, or where the next request
// begins.
bool IsSingle(const Request& request, absl::string_view name) {
  return std::count_if(request.headers.begin(), request.headers.end(),
                       [&](const auto& header) { return header.first == name; }) <= 1;
}

// No request has a body, and a body that is not read would be taken for the next request.
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

Response TextResponse(int status, absl::string_view sentence) {
  Response response;
  response.status = status;
  response.type = "text/plain; charset=utf-8";
  response.body = absl::StrCat(sentence, "\n");
  return response;
}

bool ReadTarget(absl::string_view target, Request& request) {
  if (!absl::StartsWith(target, "/") || !IsVisible(target)) return false;
  const size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != absl::string_view::npos) request.query = std::string(target.substr(question + 1));
  for (const char* name : {"host", "origin", "authorization", "content-length"}) {
    if (!IsSingle(request, name)) return false;
  }
  return !HasBody(request);
}

void AddProtection(Response& response) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
           {"Cache-Control", "no-store"},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cross-Origin-Opener-Policy", "same-origin"},
           {"Cross-Origin-Resource-Policy", "same-origin"},
           {"X-Frame-Options", "DENY"}}) {
    const bool has_it =
        std::any_of(response.headers.begin(), response.headers.end(),
                    [header = name](const auto& given) { return given.first == header; });
    if (!has_it) response.headers.emplace_back(name, value);
  }
}

}  // namespace gmt::http
