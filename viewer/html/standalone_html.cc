#include "viewer/html/standalone_html.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "viewer/html/content_policy.h"

namespace gmt::viewer {
namespace {

// A multiple of 3, so that the base64 of each element is complete: 16 MiB of text.
constexpr size_t kElementBytes = 12 << 20;

// In addition to the page's own policy, which allows it to query its server.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"connect-src 'none'\">";

std::string Escaped(std::string_view text) {
  return absl::StrReplaceAll(
      std::string(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string OpeningTag(const std::string& name) {
  return absl::StrCat("<script type=\"application/octet-stream\" data-gmt=\"", Escaped(name),
                      "\">");
}

constexpr std::string_view kTitle = "<title>", kTitleEnd = "</title>", kIndent = "\n    ";
constexpr const char kClosingTag[] = "</script>\n";

void AppendPart(const DataPart& part, std::string* out) {
  const std::string_view bytes = part.gzipped;
  for (size_t at = 0; at < bytes.size(); at += kElementBytes) {
    absl::StrAppend(out, OpeningTag(part.name),
                    absl::Base64Escape(absl::string_view(
                        bytes.data() + at, std::min(kElementBytes, bytes.size() - at))),
                    kClosingTag);
  }
}

}  // namespace

std::string Gzip(std::string_view bytes) {
  z_stream stream = {};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  // deflate can fail only for lack of output space, which is provided. Pieces: zlib counts in 32
  // bits.
  std::string out;
  constexpr size_t kPiece = 1 << 20;
  std::string piece(kPiece, '\0');
  size_t at = 0;
  int result = Z_OK;
  do {
    const size_t count = std::min(bytes.size() - at, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
    stream.avail_in = static_cast<uInt>(count);
    at += count;
    const int flush = at == bytes.size() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(kPiece);
      result = deflate(&stream, flush);
      out.append(piece, 0, kPiece - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (result != Z_STREAM_END && at < bytes.size());
  deflateEnd(&stream);
  return out;
}

uint64_t StandaloneSize(std::string_view page, std::string_view title,
                        const std::vector<DataPart>& parts) {
  const size_t begin = page.find(kTitle), end = page.find(kTitleEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return 0;
  const size_t own_title = end - begin - kTitle.size();
  uint64_t size =
      page.size() - own_title + Escaped(title).size() + kIndent.size() + kPolicy.size() + 1;
  for (const DataPart& part : parts) {
    const uint64_t elements = (part.gzipped.size() + kElementBytes - 1) / kElementBytes;
    size += (part.gzipped.size() + 2) / 3 * 4 +
            elements * (OpeningTag(part.name).size() + (sizeof(kClosingTag) - 1));
  }
  return size;
}

std::string StandaloneHtml(std::string_view page, std::string_view title,
                           const std::vector<DataPart>& parts) {
  constexpr std::string_view kBody = "<body>";
  std::string out;
  out.reserve(StandaloneSize(page, title, parts));
  if (PolicyOf(page).empty()) return out;
  // The policy must precede everything that it governs. A script may contain "<body>" too, so the
  // last occurrence is the tag.
  const size_t begin = page.find(kTitle), end = page.find(kTitleEnd), body = page.rfind(kBody);
  if (begin == std::string_view::npos || end == std::string_view::npos ||
      body == std::string_view::npos || end < begin || body < end) {
    return out;
  }
  const size_t head = page.find("<head>") + std::string_view("<head>").size();
  out.append(page, 0, head).append(kIndent).append(kPolicy);
  out.append(page, head, begin + kTitle.size() - head).append(Escaped(title));
  out.append(page, end, body + kBody.size() - end).append("\n");
  for (const DataPart& part : parts) AppendPart(part, &out);
  out.append(page, body + kBody.size());
  return out;
}

}  // namespace gmt::viewer
