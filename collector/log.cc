#include "collector/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

namespace gmt::collector {
namespace {

std::shared_ptr<spdlog::logger>& Logger() {
  static auto& logger = *new std::shared_ptr<spdlog::logger>();
  return logger;
}

}  // namespace

void LogTo(const std::string& path) {
  try {
    Logger() = spdlog::basic_logger_mt("collector", path);
    Logger()->set_pattern("%Y-%m-%dT%H:%M:%S.%e %P %v");
    Logger()->flush_on(spdlog::level::info);
  } catch (const spdlog::spdlog_ex&) {
    Logger() = nullptr;
  }
}

void Log(const std::string& message) {
  if (Logger() != nullptr) Logger()->info("{}", message);
}

}  // namespace gmt::collector
