#include "interop/foreign_input.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::interop {
namespace {

using absl::string_view;

constexpr size_t kNamesListed = 3;
constexpr size_t kTextLooked = 4096;
constexpr char kExpected[] =
    "expected a recording (.gmt), a memory snapshot of PyTorch (.pickle), an event log (.jsonl), a "
    "memory profile of JAX (.prof) or a log of RMM (.csv)";
constexpr char kRecord[] = "Record with: gpumemtrace run -o run.gmt -- COMMAND";
constexpr char kSnapshot[] =
    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") writes a readable file";

struct Foreign {
  std::string what;  // "a picture (PNG)"
  std::string then;  // what to run; empty: the general advice
};

template <size_t kSize>
string_view Bytes(const char (&bytes)[kSize]) {
  return {bytes, kSize - 1};
}

bool IsPicture(string_view head, std::string* what) {
  const struct {
    string_view magic;
    const char* what;
  } kinds[] = {{Bytes("\x89PNG\r\n"), "a picture (PNG)"},
               {Bytes("\xff\xd8\xff"), "a picture (JPEG)"},
               {Bytes("GIF8"), "a picture (GIF)"},
               {Bytes("%PDF-"), "a PDF document"}};
  for (const auto& kind : kinds) {
    if (absl::StartsWith(head, kind.magic)) *what = kind.what;
  }
  return !what->empty();
}

// torch.save writes a zip archive whose first entry is NAME/data.pkl. Before PyTorch 1.6 it wrote a
// pickle that begins with this number.
bool IsCheckpoint(string_view head) {
  constexpr char kLegacyMagic[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  if (absl::StartsWith(head, Bytes(kLegacyMagic))) return true;
  return absl::StartsWith(head, Bytes("PK\x03\x04")) &&
         absl::StrContains(head.substr(0, 512), "/data.pkl");
}

bool IsNsight(string_view path, string_view head) {
  return absl::EndsWith(path, ".nsys-rep") || absl::EndsWith(path, ".qdrep") ||
         absl::StartsWith(head, Bytes("SQLite format 3\0"));
}

bool IsJson(string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != string_view::npos && (head[first] == '{' || head[first] == '[');
}

bool IsText(string_view head) {
  head = head.substr(0, kTextLooked);
  return !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || absl::ascii_isspace(byte);
  });
}

Foreign OfJson(string_view head) {
  if (absl::StrContains(head, "\"traceEvents\"") ||
      absl::StrContains(head, "\"deviceProperties\"")) {
    return {"a trace of operators and kernels (Chrome trace JSON, as PyTorch's profiler writes)",
            absl::StrCat("It does not record what held memory; ", kSnapshot, ". ", kRecord)};
  }
  return {"JSON, but not an event log: its first line is not an object with a \"kind\"", ""};
}

// `what` is empty if the format is unknown.
Foreign Recognise(string_view path, string_view head) {
  Foreign found;
  if (IsPicture(head, &found.what)) return found;
  if (IsCheckpoint(head)) {
    return {"a checkpoint (torch.save): it holds tensors, not when they were allocated",
            absl::StrCat(kSnapshot, ". ", kRecord)};
  }
  if (IsNsight(path, head)) {
    return {absl::StartsWith(head, "SQLite") ? "a database (SQLite), such as nsys exports"
                                             : "a report of Nsight Systems",
            absl::StrCat("This format is not supported. ", kRecord)};
  }
  if (absl::StartsWith(head, Bytes("PK\x03\x04")))
    return {"a zip archive", "Unpack it, and pass the file inside"};
  if (absl::StartsWith(head, Bytes("\x28\xb5\x2f\xfd")))
    return {"compressed (zstd)", "Unpack it with: zstd -d"};
  if (absl::StartsWith(head, Bytes("\x7f"
                                   "ELF")))
    return {"a program or library (ELF)", absl::StrCat("To record it: gpumemtrace run -- ", path)};
  if (IsJson(head)) return OfJson(head);
  const std::string begin = absl::AsciiStrToLower(head.substr(0, 256));
  if (absl::StrContains(begin, "<html") || absl::StrContains(begin, "<!doctype")) {
    return {"a page (HTML)", "Pass the snapshot that it was made from"};
  }
  return found;
}

}  // namespace

bool IsKnownForeign(string_view path, string_view head) {
  return !Recognise(path, head).what.empty();
}

std::string ForeignProblem(string_view path, string_view head) {
  Foreign foreign = Recognise(path, head);
  if (foreign.what.empty()) {
    foreign.what = IsText(head) ? "text" : "a file of unknown format";
  }
  return absl::StrCat(path, " is ", foreign.what, "; ", kExpected, ". ",
                      foreign.then.empty() ? kRecord : foreign.then);
}

std::string FolderProblem(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string extension = entry->path().extension();
    if (extension == ".gmt" || extension == ".pickle") names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  const size_t count = names.size();
  if (count == 0) {
    return absl::StrCat(path, " is a folder, with no recording in it; ", kExpected, ". ", kRecord);
  }
  names.resize(std::min(count, kNamesListed));
  if (count > kNamesListed) names.push_back("...");
  return absl::StrCat(path, " is a folder; name a file in it: ", absl::StrJoin(names, ", "));
}

std::string MissingProblem(string_view path) {
  return absl::StrCat("there is no file ", path, ". Record it with: gpumemtrace run -o ", path,
                      " -- COMMAND");
}

}  // namespace gmt::interop
