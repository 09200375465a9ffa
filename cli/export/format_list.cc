#include "cli/export/format_list.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "answers/json.h"
#include "cli/export/formats.h"
#include "cli/terminal.h"

namespace gmt::cli {

void PrintFormats() {
  for (const ExportFormat& format : ExportFormats()) {
    fmt::print("{:<10}  for {}\n{:<10}  keeps {}\n{:<10}  drops {}\n", format.name, format.consumer,
               "", format.keeps, "", format.drops);
  }
}

void PrintFormatsAsJson() {
  nlohmann::ordered_json object = answers::NewJson("export", "");
  for (const ExportFormat& format : ExportFormats()) {
    object["formats"].push_back({{"name", format.name},
                                 {"for", format.consumer},
                                 {"keeps", format.keeps},
                                 {"drops", format.drops},
                                 {"options", format.options},
                                 {"takes_several", format.takes_several}});
  }
  PrintJson(object);
}

}  // namespace gmt::cli
