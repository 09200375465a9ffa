#include "viewer/server/error_response.h"

#include <nlohmann/json.hpp>
#include <string>

namespace gmt::viewer {

http::Response ErrorResponse(int status, absl::string_view sentence) {
  const nlohmann::json body = {{"error", std::string(sentence)}};
  http::Response response;
  response.status = status;
  response.type = "application/json";
  response.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

}  // namespace gmt::viewer
