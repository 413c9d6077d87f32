// The secret that keeps strangers, and ranks of another launch, out of the key-value service.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace assay::host::wireup {

// Once per process before anything else of libsodium; every later call costs nothing. Thread-safe. Throws WireupError
// when the system gives libsodium no random bytes.
void make_sodium_ready();

// 128 random bits of the system as 32 hexadecimal digits. Throws WireupError.
std::string random_token();

// A token that a user has given. Who plays the server gets a proof against which guesses can be tried, as many and as
// fast as a machine can: it must be long, and not one character repeated. Throws WireupError that names `source`, says
// what is expected and how one is made, and does not show the token.
void check_token(std::string_view token, std::string_view source);

// What the file holds without the end of its line, checked as above. Throws WireupError, also when the file is not its
// user's alone.
std::string token_of_file(const std::filesystem::path& file, std::string_view source);

}  // namespace assay::host::wireup
