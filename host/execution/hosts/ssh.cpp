#include "hosts/ssh.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <string_view>

#include "common/command.hpp"
#include "hosts/host_error.hpp"

namespace assay::host::hosts {
namespace {

namespace fs = std::filesystem;

// In single quotes, which sh, csh and fish read alike as long as the text has none, nor a "!" or "\".
std::string quoted(const fs::path& path) {
  const std::string text = path.string();
  const auto is_odd = [](unsigned char c) { return c < ' ' || c == 127 || c == '\'' || c == '!' || c == '\\'; };
  if (std::any_of(text.begin(), text.end(), is_odd))
    throw HostError(fmt::format(
        "the path {} has a character that a shell on the hosts may read as something else; install assay in a folder "
        "without quotes, '!' and '\\'",
        text));
  return "'" + text + "'";
}

// Whether the user's own configuration shares connections to the host: then its way of logging in, which may have asked
// for a second factor, serves here, too.
bool shares_connections(const SshHost& host) {
  const CommandAnswer answer = run_command({"ssh", "-G", "--", host.name}, std::chrono::seconds(10));
  std::istringstream lines(answer.out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("controlpath ") && line != "controlpath none") return true;
  return false;
}

// What ssh prints about connections that go on without it.
bool is_harmless(std::string_view line) {
  return line.find("multiplexing") != std::string_view::npos || line.starts_with("ControlSocket ") ||
         line.starts_with("mux_client_") || line.starts_with("Warning: Permanently added");
}

std::vector<std::string> complaints_in(const std::string& text) {
  std::istringstream all(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(all, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty() && !is_harmless(line)) lines.push_back(line);
  }
  return lines;
}

// A complaint of ssh, and what to do about it. {0}: the host.
struct Complaint {
  std::string_view part;  // of what ssh says
  std::string_view remedy;
};
constexpr std::array complaints{
    Complaint{"REMOTE HOST IDENTIFICATION HAS CHANGED",
              "its key is not the one that this machine knows. If it was installed anew: ssh-keygen -R {0}, then "
              "connect once by hand: ssh {0}"},
    Complaint{"Host key verification failed",
              "this machine does not know its key. Connect once by hand and compare the fingerprint: ssh {0}"},
    Complaint{"No matching host key", "this machine does not know its key. Connect once by hand: ssh {0}"},
    Complaint{"Too many authentication failures",
              "choose one key for it in ~/.ssh/config (IdentityFile, IdentitiesOnly yes)"},
    Complaint{"Permission denied",
              "it must let this user in without a question: ssh-copy-id {0}, or load the key into an agent: ssh-add"},
    Complaint{"Could not resolve hostname",
              "no such name; expected a name of DNS, of /etc/hosts or of ~/.ssh/config (Host, HostName)"},
    Complaint{"Connection refused",
              "no ssh server listens there; start sshd, or give its port in ~/.ssh/config (Port)"},
    Complaint{"No route to host", "the machine is down, or a firewall lies between"},
    Complaint{"Network is unreachable", "this machine has no network to it"},
    Complaint{"Connection timed out", "the machine is down, or a firewall lies between"},
    Complaint{"timed out", "the machine is down, or the network between is cut"},
    Complaint{"Bad owner or permissions", "ssh refuses its own configuration; mend the file that it names"},
    Complaint{"Connection closed by", "its ssh server ended the connection; its log says why (journalctl -u ssh)"},
};

}  // namespace

ControlFolder::ControlFolder() {
  // Short: the path of a socket has 108 characters at most.
  std::string text = "/tmp/assay-ssh-XXXXXX";
  if (!mkdtemp(text.data()))
    throw HostError(fmt::format("cannot create a folder like {}: {}", text, std::strerror(errno)));
  path_ = text;
}

ControlFolder::~ControlFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> ssh_call(const SshHost& host, const ControlFolder& control, const std::string& command) {
  std::vector<std::string> words{"ssh", "-T", "-x", "-e", "none"};
  // A host that is cut off is noticed after 15 s.
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3",
                             "LogLevel=INFO", "RemoteCommand=none"})
    words.insert(words.end(), {"-o", option});
  if (!shares_connections(host))
    words.insert(words.end(), {"-o", "ControlMaster=auto", "-o", "ControlPersist=no", "-o",
                               fmt::format("ControlPath={}/%C", control.path().string())});
  words.insert(words.end(), {"--", host.name, command});
  return words;
}

std::string keeper_command(const fs::path& program) {
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  const std::string with = libraries && *libraries ? "env LD_LIBRARY_PATH=" + quoted(libraries) + " " : "";
  return fmt::format("exec {}{} host-keeper", with, quoted(program));
}

std::string hash_command(const fs::path& file) { return "exec sha256sum -- " + quoted(file); }

std::string reason_of_end(const SshHost& host, int code, const std::string& said, const fs::path& program) {
  const std::vector<std::string> lines = complaints_in(said);
  const std::string last = lines.empty() ? "" : lines.back();
  if (code < 0) return fmt::format("the ssh process to {} was killed (signal {})", host.name, -code);
  constexpr int of_ssh_itself = 255, not_found = 127, not_executable = 126;
  if (code == of_ssh_itself) {
    const auto has = [&lines](std::string_view part) {
      return std::any_of(lines.begin(), lines.end(),
                         [part](const std::string& line) { return line.find(part) != std::string::npos; });
    };
    for (const Complaint& complaint : complaints)
      if (has(complaint.part))
        return fmt::format("{}; {}", last, fmt::format(fmt::runtime(complaint.remedy), host.name));
    return last.empty() ? "the connection was lost" : last;
  }
  if (code == not_found && said.find("shared libraries") != std::string::npos)
    return fmt::format("{}; install the library there, or set LD_LIBRARY_PATH here: hosts get it", last);
  if (code == not_found || code == not_executable)
    return fmt::format("it cannot start {}{}; install the same assay there under the same path, or share the folder",
                       program.string(), last.empty() ? "" : " (" + last + ")");
  return fmt::format("the program there ended with {}{}", code, last.empty() ? "" : ": " + last);
}

}  // namespace assay::host::hosts
