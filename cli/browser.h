// cli/browser.h
//
// The user's browser, if one can be seen.
//
// Thread safety: reads the environment; one thread.

#ifndef GMT_CLI_BROWSER_H_
#define GMT_CLI_BROWSER_H_

#include <string>

namespace gmt::cli {

// Returns whether the user is connected by ssh. A browser on this machine would then not be seen.
bool IsOverSsh();

// Returns $BROWSER if it is set, otherwise "xdg-open" if there is a display, otherwise "".
std::string BrowserCommand();

// Opens the address without waiting. The browser outlives this program and writes nothing to its
// terminal. Returns false if the command cannot be run.
bool OpenBrowser(const std::string& command, const std::string& url);

// Returns the command that makes `port` of this machine reachable from the user's machine:
// "ssh -N -L 4711:127.0.0.1:4711 user@host".
std::string ForwardingCommand(int port);

}  // namespace gmt::cli

#endif  // GMT_CLI_BROWSER_H_
