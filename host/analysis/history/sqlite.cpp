#include "history/sqlite.hpp"

#include <sqlite3.h>

namespace assay::host::history {
namespace {

constexpr int patience_ms = 5000;  // for another assay that writes the same index

void check_code(sqlite3* database, int code) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
  throw DatabaseError(database ? sqlite3_errmsg(database) : sqlite3_errstr(code),
                      code == SQLITE_NOTADB || code == SQLITE_CORRUPT);
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close(handle); }
void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Database::Database(const std::filesystem::path& file) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open(file.empty() ? ":memory:" : file.c_str(), &handle);
  handle_.reset(handle);
  check_code(handle, code);
  sqlite3_busy_timeout(handle, patience_ms);
}

void Database::run(const char* sql) {
  check_code(handle_.get(), sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr));
}

Statement::Statement(const Database& database, const char* sql) : database_(database.handle()) {
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr));
  statement_.reset(statement);
}

void Statement::check(int code) const { check_code(database_, code); }

Statement& Statement::bind(const std::string& text) {
  check(sqlite3_bind_text(statement_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  check(sqlite3_bind_int64(statement_.get(), ++bound_, number));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  check(code);
  return code == SQLITE_ROW;
}

void Statement::finish() {
  while (step()) {
  }
  check(sqlite3_reset(statement_.get()));
  bound_ = 0;
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)) : "";
}

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_.get(), column); }

}  // namespace assay::host::history
