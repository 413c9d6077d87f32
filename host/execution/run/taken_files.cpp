#include "run/taken_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <span>
#include <system_error>

#include "common/files.hpp"
#include "common/sha256.hpp"

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* plugins = "plugins";
constexpr const char* devices = "devices";
constexpr const char* communicators = "comm";

// Size and times: as long as they stay, so does the content.
std::string state_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return "";
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec, found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
}

// Where a file system executes nothing, the loader's own words would be a riddle.
void require_executables(const fs::path& folder) {
  struct statvfs found {};
  if (::statvfs(folder.c_str(), &found) == 0 && (found.f_flag & ST_NOEXEC))
    throw StorageError(
        fmt::format("{} is on a file system mounted with noexec, from which a run cannot open its copies of libraries; "
                    "choose another folder with --output DIR",
                    folder.string()));
}

}  // namespace

class TakenFiles::CopiesFolder {
 public:
  explicit CopiesFolder(const fs::path& of_run) : path_(fs::absolute(of_run).lexically_normal() / "files") {
    require_executables(of_run);
    remove();  // what an earlier process has left that was killed
  }
  ~CopiesFolder() { remove(); }
  CopiesFolder(const CopiesFolder&) = delete;
  CopiesFolder& operator=(const CopiesFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  void remove() const {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  fs::path path_;
};

TakenFiles::TakenFiles(const RunTarget& target, const std::optional<fs::path>& folder)
    : host_hash_(sha256_of_file("/proc/self/exe")), plugin_(target.plugin_file), comm_folder_(plugin::comm_folder()) {
  const plugin::LibraryCopy& of_plugin = target.found.copies.front();
  plugin_hashes_.emplace_back("plugin", of_plugin.sha256());
  if (folder) {
    folder_ = std::make_unique<CopiesFolder>(*folder);
    copy(of_plugin, plugins, false);
    plugin_ = folder_->path() / plugins / target.plugin_file.filename();
  }
  for (const plugin::LibraryCopy& beside : std::span(target.found.copies).subspan(1)) {
    plugin_hashes_.emplace_back("plugin/" + beside.file().filename().string(), beside.sha256());
    if (!folder_) continue;
    copy(beside, plugins, false);
    searched_ = {(folder_->path() / plugins).string()};
  }
}

TakenFiles::~TakenFiles() = default;

// With what it needs as links: vendors' libraries are large, and have versions, which the record states.
void TakenFiles::copy(const plugin::LibraryCopy& copy, const std::string& group, bool with_needs) {
  const fs::path to = folder_->path() / group;
  create_folders(to);
  copy.write_to(to / copy.file().filename());
  copies_.push_back({(to / copy.file().filename()).string(), copy.file().string(), copy.sha256()});
  if (!with_needs) return;
  for (const fs::path& library : plugin::libraries_beside(copy.file())) {
    std::error_code error;
    fs::create_symlink(library, to / library.filename(), error);
    if (error && error != std::errc::file_exists)
      throw_storage_error("make the link", to / library.filename(), error.value());
    if (std::find(searched_.begin(), searched_.end(), to) == searched_.end()) searched_.push_back(to.string());
  }
}

fs::path TakenFiles::take_devices(const std::string& wanted) {
  const std::vector<std::string> installed = plugin::installed_device_kinds();
  for (const std::string& kind : installed) {
    if ((wanted != "auto" && wanted != kind) || devices_.contains(kind)) continue;
    const plugin::LibraryCopy backend = plugin::LibraryCopy::take(plugin::device_file(kind));
    devices_[kind] = backend.sha256();
    if (folder_) copy(backend, devices, true);
  }
  return folder_ ? folder_->path() / devices : fs::path();
}

void TakenFiles::take_communicators() {
  comm_.emplace();
  const std::string prefix = "libassay_comm_";
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator i(comm_folder_, error), end; !error && i != end; i.increment(error))
    if (i->path().extension() == ".so" && i->path().filename().string().starts_with(prefix)) found.push_back(i->path());
  for (const fs::path& file : found) {
    const plugin::LibraryCopy library = plugin::LibraryCopy::take(file);
    (*comm_)[file.stem().string().substr(prefix.size())] = library.sha256();
    if (folder_) copy(library, communicators, true);
  }
  if (folder_ && !found.empty()) comm_folder_ = folder_->path() / communicators;
}

record::Named<std::string> TakenFiles::hashes(const std::string& device_kind, std::int32_t ranks) {
  if (!device_kind.empty())
    take_devices(device_kind);  // asked for a case of an earlier run, whose device no case has now
  record::Named<std::string> files{{"host", host_hash_}};
  files.insert(files.end(), plugin_hashes_.begin(), plugin_hashes_.end());
  if (const auto device = devices_.find(device_kind); device != devices_.end())
    files.emplace_back("device", device->second);
  if (ranks == 1) return files;
  if (!comm_) take_communicators();
  // NCCL is for GPUs alone; which of the others a workload takes is its own business.
  for (const auto& [name, hash] : *comm_)
    if (name != "nccl" || device_kind != "cpu") files.emplace_back("comm." + name, hash);
  return files;
}

void TakenFiles::say_in(worker::CaseSpec& spec) const {
  spec.plugin_file = plugin_.string();
  spec.comm_folder = comm_folder_.string();
  spec.library_folders = searched_;
  spec.copies = copies_;
  spec.host_sha256 = host_hash_;
  if (!devices_.contains(spec.device_kind)) return;
  const fs::path original = plugin::device_file(spec.device_kind);
  spec.device_file = (folder_ ? folder_->path() / devices / original.filename() : original).string();
}

const std::string& TakenFiles::input_hash(const std::string& path, const std::atomic<int>* stop) {
  const auto [known, is_new] = inputs_.try_emplace(path);
  if (is_new) try {
      known->second.state = state_of(path);
      known->second.hash = sha256_of_file(path, stop);
    } catch (...) {
      inputs_.erase(known);
      throw;
    }
  return known->second.hash;
}

std::optional<std::string> TakenFiles::change_of_input(const std::string& path) {
  const auto known = inputs_.find(path);
  if (known == inputs_.end()) return std::nullopt;
  const std::string state = state_of(path);
  if (state == known->second.state) return std::nullopt;
  const char* remedy = "; put it back, or start a new run with the changed file";
  std::string hash;
  try {
    hash = sha256_of_file(path);
  } catch (const std::system_error& e) {
    return fmt::format("{}, which it could when the run began{}", e.what(), remedy);
  }
  if (hash != known->second.hash)
    return fmt::format("{} has changed during the run (SHA-256 {} when it began, {} now){}", path,
                       short_hash(known->second.hash), short_hash(hash), remedy);
  known->second.state = state;  // touched, and the same
  return std::nullopt;
}

FollowedFiles::~FollowedFiles() {
  std::error_code error;
  if (!own_folder_.empty()) fs::remove_all(own_folder_, error);
}

bool FollowedFiles::sees(const worker::CopiedFile& file) {
  const auto [known, is_new] = hashes_.try_emplace(file.copy);
  if (is_new) try {
      known->second = sha256_of_file(file.copy);
    } catch (const std::system_error&) {  // it is not there
    }
  return known->second == file.sha256;
}

void FollowedFiles::make(const worker::CopiedFile& file, const fs::path& own, const std::string& host) {
  if (!made_.insert(own).second) return;
  const plugin::LibraryCopy taken = plugin::LibraryCopy::take(file.original);
  if (taken.sha256() != file.sha256)
    throw plugin::PluginError(
        fmt::format("{} on {} is another file than on the machine that leads the run (SHA-256 {}, {} there); install "
                    "the same on all "
                    "of them",
                    file.original, host, short_hash(taken.sha256()), short_hash(file.sha256)));
  create_folders(own.parent_path());
  taken.write_to(own);
  if (own.parent_path().filename() == plugins) return;
  for (const fs::path& library : plugin::libraries_beside(file.original)) {
    std::error_code error;
    fs::create_symlink(library, own.parent_path() / library.filename(), error);
  }
}

worker::CaseSpec FollowedFiles::seen_from_here(worker::CaseSpec spec) {
  if (own_host_hash_.empty()) own_host_hash_ = sha256_of_file("/proc/self/exe");
  if (own_host_hash_ != spec.host_sha256)
    throw plugin::PluginError(
        fmt::format("assay on {} is another build than the one that leads the run (SHA-256 {}, {} there); install the "
                    "same on all machines",
                    spec.ranks.host_name, short_hash(own_host_hash_), short_hash(spec.host_sha256)));
  if (std::all_of(spec.copies.begin(), spec.copies.end(), [this](const auto& file) { return sees(file); })) return spec;
  const std::string theirs = fs::path(spec.plugin_file).parent_path().parent_path().string();
  own_folder_ = fmt::format("{}-{}-{}", theirs, spec.ranks.host_name, ::getpid());
  const auto here = [&](std::string& path) {
    if (path.starts_with(theirs + "/")) path.replace(0, theirs.size(), own_folder_.string());
  };
  for (worker::CopiedFile& file : spec.copies) {
    std::string own = file.copy;
    here(own);
    make(file, own, spec.ranks.host_name);
    file.copy = own;
  }
  for (std::string* path : {&spec.plugin_file, &spec.device_file, &spec.comm_folder}) here(*path);
  for (std::string& folder : spec.library_folders) here(folder);
  return spec;
}

}  // namespace assay::host::run
