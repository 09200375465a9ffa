#include "cli/query/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::cli {
namespace {

constexpr int kRemembered = 1000;   // entries
constexpr size_t kMaxListed = 200;  // words below the line

// Prints words in columns, as wide as the terminal.
void PrintWords(const std::vector<std::string>& words) {
  winsize size = {};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  size_t width = 0;
  for (const std::string& word : words) width = std::max(width, word.size() + 2);
  const size_t columns = std::max<size_t>(1, (is_known ? size.ws_col : 80u) / width);
  const size_t rows = (words.size() + columns - 1) / columns;
  for (size_t row = 0; row < rows; ++row) {
    std::string line;
    for (size_t i = row; i < words.size(); i += rows) {
      line += words[i];
      if (i + rows < words.size()) line.append(width - words[i].size(), ' ');
    }
    std::printf("%s\n", line.c_str());
  }
  std::fflush(stdout);
}

// The characters that all words begin with.
std::string CommonBeginning(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto differs = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(differs.first, common.end());
  }
  return common;
}

}  // namespace

struct LineEditor::Terminal {
  EditLine* line = nullptr;
  History* history = nullptr;
  std::string prompt;
  Completer completer;
  bool is_cancelled = false;

  static Terminal* Of(EditLine* line) {
    void* data = nullptr;
    el_get(line, EL_CLIENTDATA, &data);
    return static_cast<Terminal*>(data);
  }
  static char* Prompt(EditLine* line) { return Of(line)->prompt.data(); }

  static unsigned char Cancel(EditLine* line, int) {
    Of(line)->is_cancelled = true;
    return CC_NEWLINE;
  }
  static unsigned char Complete(EditLine* line, int) {
    const LineInfo* info = el_line(line);
    const Completion completion =
        Of(line)->completer({info->buffer, static_cast<size_t>(info->cursor - info->buffer)});
    const std::vector<std::string>& words = completion.words;
    if (words.empty()) return CC_REFRESH_BEEP;
    std::string added =
        CommonBeginning(words).substr(std::min(completion.typed, CommonBeginning(words).size()));
    if (words.size() == 1 && words.front().back() != '(') added += ' ';
    if (!added.empty()) return el_insertstr(line, added.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    std::printf("\n");
    if (words.size() > kMaxListed) {
      std::printf("%zu words are possible: type the first letters\n", words.size());
      std::fflush(stdout);
    } else {
      PrintWords(words);
    }
    return CC_REDISPLAY;
  }
};

LineEditor::LineEditor() : terminal_(std::make_unique<Terminal>()) {}

LineEditor::~LineEditor() {
  if (terminal_->line != nullptr) el_end(terminal_->line);
  if (terminal_->history != nullptr) history_end(terminal_->history);
}

absl::StatusOr<std::unique_ptr<LineEditor>> LineEditor::Open(const std::string& history,
                                                             Completer completer) {
  std::setlocale(LC_CTYPE, "");  // the encoding of what is typed
  std::unique_ptr<LineEditor> editor(new LineEditor);
  editor->history_ = history;
  Terminal& terminal = *editor->terminal_;
  terminal.completer = std::move(completer);
  terminal.line = el_init("gpumemtrace", stdin, stdout, stderr);
  terminal.history = history_init();
  if (terminal.line == nullptr || terminal.history == nullptr)
    return absl::UnavailableError("query: the terminal cannot be used");
  EditLine* line = terminal.line;
  el_set(line, EL_CLIENTDATA, &terminal);
  el_set(line, EL_PROMPT, &Terminal::Prompt);
  el_set(line, EL_EDITOR, "emacs");
  el_set(line, EL_SIGNAL, 1);
  // Ctrl-C is a key while a line is typed; at other times it is a signal. The first word is for
  // settings that are derived again from the terminal, the second for those of now.
  el_set(line, EL_SETTY, "-d", "-intr", "intr=", nullptr);
  el_set(line, EL_ADDFN, "cancel", "Discard the statement", &Terminal::Cancel);
  el_set(line, EL_ADDFN, "complete", "Complete the word", &Terminal::Complete);
  el_set(line, EL_BIND, "^C", "cancel", nullptr);
  el_set(line, EL_BIND, "^I", "complete", nullptr);
  el_set(line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  HistEvent event = {};
  ::history(terminal.history, &event, H_SETSIZE, kRemembered);
  ::history(terminal.history, &event, H_SETUNIQUE, 1);
  if (!history.empty()) {
    const int loaded = ::history(terminal.history, &event, H_LOAD, history.c_str());
    // The file grows by an entry at a time.
    if (loaded > 2 * kRemembered) ::history(terminal.history, &event, H_SAVE, history.c_str());
  }
  el_set(line, EL_HIST, &::history, terminal.history);
  return editor;
}

LineEditor::Line LineEditor::Read(const std::string& prompt) {
  terminal_->prompt = prompt;
  terminal_->is_cancelled = false;
  int count = 0;
  const char* typed = el_gets(terminal_->line, &count);
  if (terminal_->is_cancelled) {
    std::printf("^C\n");
    return {Line::kCancelled, ""};
  }
  if (typed == nullptr || count <= 0) return {Line::kEndOfInput, ""};
  std::string text(typed, static_cast<size_t>(count));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return {Line::kEntered, std::move(text)};
}

absl::Status LineEditor::Remember(const std::string& entry) {
  HistEvent event = {};
  ::history(terminal_->history, &event, H_ENTER, entry.c_str());
  return history_.empty() ? absl::OkStatus() : AppendToFile();
}

// Appends, because other prompts may write the same file.
absl::Status LineEditor::AppendToFile() {
  const auto failed = [this](const char* reason) {
    return absl::UnavailableError(
        absl::StrCat("the history cannot be written to ", history_, ": ", reason));
  };
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(history_).parent_path();
  if (std::filesystem::create_directories(folder, error); error)
    return failed(error.message().c_str());
  const int file = open(history_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  FILE* stream = file < 0 ? nullptr : fdopen(file, "a");
  if (stream == nullptr) return failed(std::strerror(errno));
  HistEvent event = {};
  std::fseek(stream, 0, SEEK_END);  // an empty file gets libedit's first line
  const int written = ::history(terminal_->history, &event, H_NSAVE_FP, size_t{0}, stream);
  const bool is_whole = std::fclose(stream) == 0 && written >= 0;
  return is_whole ? absl::OkStatus() : failed(std::strerror(errno));
}

}  // namespace gmt::cli
