// collector/log.h
//
// The collector's log: a file for whoever looks into it, nothing by default.
//
// Thread safety: Log() from any thread, LogTo() before it.

#ifndef GMT_COLLECTOR_LOG_H_
#define GMT_COLLECTOR_LOG_H_

#include <string>

namespace gmt::collector {

// Appends to this file from now on. Does nothing where it cannot be opened: a log must not cost a
// recording.
void LogTo(const std::string& path);
void Log(const std::string& message);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_LOG_H_
