// collector/log.h
//
// The collector's log file, for diagnosis; off by default.
//
// Thread safety: Log() from any thread; call LogTo() before.

#ifndef GMT_COLLECTOR_LOG_H_
#define GMT_COLLECTOR_LOG_H_

#include <string>

namespace gmt::collector {

// Appends to this file from now on. Does nothing if it cannot be opened, because a log must never
// cost a recording.
void LogTo(const std::string& path);
void Log(const std::string& message);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_LOG_H_
