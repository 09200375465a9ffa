// viewer/html/sha256.h
//
// SHA-256 (FIPS 180-4), for the hashes of a Content-Security-Policy. Not suitable for passwords;
// not fast.
// Thread safety: pure function.

#ifndef GMT_VIEWER_HTML_SHA256_H_
#define GMT_VIEWER_HTML_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gmt::viewer {

// Returns 32 bytes.
std::string Sha256(absl::string_view bytes);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_SHA256_H_
