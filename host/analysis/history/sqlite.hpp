// SQLite, as the index uses it: a database and its statements, whose errors are exceptions.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace assay::host::history {

// The text is SQLite's own. `is_damaged`: the file is no database, or a broken one.
class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(const std::string& text, bool is_damaged) : std::runtime_error(text), is_damaged_(is_damaged) {}
  bool is_damaged() const { return is_damaged_; }

 private:
  bool is_damaged_;
};

class Database {
 public:
  // An empty path: in memory alone.
  explicit Database(const std::filesystem::path& file);
  void run(const char* sql);
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

// One statement with its values: bind all, then step until there is no further row.
class Statement {
 public:
  Statement(const Database& database, const char* sql);
  Statement& bind(const std::string& text);
  Statement& bind(std::int64_t number);
  bool step();    // whether there is a row
  void finish();  // steps to the end, and is ready to be bound anew
  std::string text(int column) const;
  std::int64_t number(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check(int code) const;
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

}  // namespace assay::host::history
