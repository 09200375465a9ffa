#include "viewer/html/page_html.h"

#ifdef GMT_PAGE_FILE
// .incbin is fast; compiling the file as a C++ array would take seconds.
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "gmt_page_begin:\n"
    ".incbin \"" GMT_PAGE_FILE
    "\"\n"
    "gmt_page_end:\n"
    ".previous\n");
extern "C" {
// Local to this object file, so that no other module can see or interpose them.
extern const char gmt_page_begin[] __attribute__((visibility("hidden")));
extern const char gmt_page_end[] __attribute__((visibility("hidden")));
}
#endif

namespace gmt::viewer {

std::string_view PageHtml() {
#ifdef GMT_PAGE_FILE
  return {gmt_page_begin, static_cast<size_t>(gmt_page_end - gmt_page_begin)};
#else
  return {};
#endif
}

std::string_view PageMissing() {
  return "this gpumemtrace was built without its page, because Node.js was not found. Run "
         "scripts/setup --build, configure again with cmake, and build; or configure with "
         "-DGMT_PAGE_HTML=FILE, a page built elsewhere";
}

}  // namespace gmt::viewer
