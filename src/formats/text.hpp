#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Text from a file as it may be shown in a message: on one line, in double quotes, control
/// characters and malformed UTF-8 escaped as \xNN, cut after about 100 bytes.
std::string printable(std::string_view text);

}  // namespace tessera
