// cli/browser.h
//
// The user's browser, where there is one to be seen.
//
// Thread safety: reads the environment; one thread.

#ifndef GMT_CLI_BROWSER_H_
#define GMT_CLI_BROWSER_H_

#include <string>

namespace gmt::cli {

// Whether the user looks at this machine through ssh; a browser here would not be seen.
bool IsOverSsh();

// "$BROWSER", where it is set, else "xdg-open" where a display is; "" where no browser could be seen.
std::string BrowserCommand();

// Opens the address and does not wait. The browser outlives this program and writes nothing to its
// terminal. Returns false where the command cannot be run.
bool OpenBrowser(const std::string& command, const std::string& url);

// How to reach `port` of this machine from the one where the browser is:
// "ssh -N -L 4711:127.0.0.1:4711 user@host".
std::string ForwardingCommand(int port);

}  // namespace gmt::cli

#endif  // GMT_CLI_BROWSER_H_
