// SPDX-License-Identifier: Apache-2.0
#include "build/builder.hpp"

#include "build/initramfs.hpp"
#include "build/scripts.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::imaging::build {
namespace {

namespace fs = std::filesystem;

constexpr std::array kResults{"root.img", "vmlinuz", "initrd.img", "packages.txt", "build.log"};
/// What every template needs, whatever it asks for: kmod, so that the kernel finds its modules; tzdata, so that the
/// time is told as on the host. procps and iproute2 are left to the template.
constexpr std::array kAlways{"kmod", "ca-certificates", "tzdata"};

Status writeFile(const fs::path& path, std::string_view contents, fs::perms permissions = fs::perms(0644)) {
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    stream.close();
    if (!stream) {
        return failErrno("write " + path.string(), errno);
    }
    std::error_code error;
    fs::permissions(path, permissions, error);
    return {};
}

/// The lines in which tools say what went wrong, before all the others.
std::string reasonIn(const std::string& log) {
    std::string reasons;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        // These two only say that something failed, behind those that say what.
        if (line.starts_with("E: setup failed") || line.starts_with("E: mmdebstrap failed")) {
            continue;
        }
        if (line.starts_with("E: ") || line.starts_with("bulkhead-build: ") || line.starts_with("mke2fs: ")) {
            reasons += line + "\n";
        }
    }
    return process::tailForMessage(reasons.empty() ? log : reasons);
}

} // namespace

Builder::Builder(BuildOptions options, Progress progress, std::stop_token cancel)
    : m_options(std::move(options))
    , m_progress(progress)
    , m_cancel(std::move(cancel)) {}

Builder::~Builder() {
    removeWork();
}

Status Builder::build() {
    std::error_code error;
    if (!fs::is_directory(m_options.output, error) || !fs::is_empty(m_options.output, error)) {
        return fail(ErrorCode::InvalidArgument,
                    "The output folder " + m_options.output.string() + " must exist and be empty");
    }
    for (const auto step :
         {&Builder::prepare, &Builder::bootstrap, &Builder::unpack, &Builder::takeOut, &Builder::makeFileSystem}) {
        auto done = m_cancel.stop_requested() ? fail(ErrorCode::Cancelled, "The build was cancelled") : (this->*step)();
        if (!done) {
            removeOutput();
            return fail(done.error());
        }
    }
    if (auto done = writeFile(m_options.output / "build.log", m_log); !done) {
        removeOutput();
        return done;
    }
    m_progress.phase("finish", 1, "The template is built");
    return {};
}

Status Builder::runTool(const std::string& program, std::vector<std::string> arguments,
                        std::vector<std::string> environment) {
    process::ProcessSpec spec;
    spec.program = program;
    spec.arguments = std::move(arguments);
    spec.environment = process::toolEnvironment();
    spec.environment.insert(spec.environment.end(), environment.begin(), environment.end());
    spec.workingDirectory = m_work;
    spec.umask = 022;
    spec.noNewPrivileges = false; // newuidmap is a set-user-id program
    process::RunOptions options;
    options.timeout = std::chrono::minutes(30);
    options.killGrace = std::chrono::seconds(10);
    options.maxOutput = 4 * kMiB;
    options.cancel = m_cancel;
    options.progressDescriptor = 3;
    options.onProgressLine = [this](std::string_view line) { m_progress.forward(line); };
    auto result = process::run(spec, options);
    if (!result) {
        return fail(result.error());
    }
    m_log += result->output + result->error;
    if (!result->status.isSuccess()) {
        return fail(ErrorCode::HostFailure, spec.program.filename().string() + " failed (" + result->status.text() +
                                                "): " + reasonIn(result->error + result->output));
    }
    return {};
}

Status Builder::runMapped(std::vector<std::string> command) {
    std::vector<std::string> arguments{"--map-auto", "--map-root-user", "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    return runTool("/usr/bin/unshare", std::move(arguments));
}

Status Builder::prepare() {
    m_progress.phase("prepare", 0, "Reading the apt sources");
    const char* const configured = std::getenv("TMPDIR");
    std::string pattern = std::string(configured != nullptr ? configured : "/var/tmp") + "/bulkhead-build.XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
        return failErrno("make a work folder " + pattern, errno);
    }
    m_work = pattern;
    // mmdebstrap's root is one of our subordinate users and has to reach its folder below.
    ::chmod(m_work.c_str(), 0711);
    for (const char* const folder : {"overlay", "tmp", "root"}) {
        std::error_code error;
        fs::create_directory(m_work / folder, error);
        if (error) {
            return failErrno("make " + (m_work / folder).string(), error.value());
        }
        ::chmod((m_work / folder).c_str(), 0755);
    }
    if (auto mapped = runMapped({"true"}); !mapped) {
        return fail(ErrorCode::Unavailable,
                    "This user cannot make user namespaces with subordinate ids; it needs lines in /etc/subuid and "
                    "/etc/subgid and the package uidmap (" +
                        mapped.error().message + ")");
    }
    HostSources host;
    if (!m_options.mirrorFile) {
        host = readHostSources("/");
    } else if (auto sources = readSourcesFile(*m_options.mirrorFile)) {
        host.sources = std::move(*sources);
    } else {
        return fail(sources.error());
    }
    std::string unreadable;
    for (const std::string& file : host.unreadable) {
        unreadable += "\nCannot read " + file;
    }
    m_log += unreadable.empty() ? std::string() : unreadable.substr(1) + "\n";
    const auto selected = selectDebianSources(std::move(host.sources), m_options.suite);
    if (!selected) {
        return fail(selected.error().code, selected.error().message + unreadable);
    }
    auto auth = formatAuth(*selected);
    if (!auth) {
        return fail(auth.error());
    }
    m_aptAuth = std::move(*auth);
    if (auto done = writeFile(m_work / "sources.list", formatSources(*selected)); !done) {
        return done;
    }
    process::ProcessSpec dump;
    dump.program = "/usr/bin/apt-config";
    dump.arguments = {"dump"};
    dump.environment = process::toolEnvironment();
    const auto result = process::runChecked(dump);
    if (!result) {
        // Without its proxy, for example, every download would fail, and nobody would know why.
        return fail(result.error().code,
                    "The builder's user cannot read apt's configuration: " + result.error().message);
    }
    m_aptOptions = selectAptOptions(result->output);
    if (auto done = writeFile(m_work / "customize.sh", kCustomizeScript, fs::perms(0755)); !done) {
        return done;
    }
    return writeOverlay();
}

Status Builder::writeOverlay() const {
    const fs::path overlay = m_work / "overlay";
    const fs::path certificates = overlay / "usr/local/share/ca-certificates";
    const fs::path aptConf = overlay / "etc/apt/apt.conf.d";
    std::error_code error;
    // fs::create_directories would follow our umask.
    ::umask(022);
    fs::create_directories(certificates, error);
    fs::create_directories(aptConf, error);
    if (error) {
        return failErrno("make " + overlay.string(), error.value());
    }
    for (const auto& entry : fs::recursive_directory_iterator("/usr/local/share/ca-certificates", error)) {
        std::error_code skipped;
        if (entry.path().extension() == ".crt" && entry.is_regular_file(skipped)) {
            const fs::path target = certificates / entry.path().filename();
            fs::copy_file(entry.path(), target, fs::copy_options::overwrite_existing, skipped);
            fs::permissions(target, fs::perms(0644), skipped);
        }
    }
    std::string conf = "Acquire::Languages \"none\";\nAPT::Install-Recommends \"false\";\n";
    for (const std::string& line : m_aptOptions.forTemplate) {
        conf += line + "\n";
    }
    if (auto done = writeFile(aptConf / "90bulkhead", conf); !done) {
        return done;
    }
    if (auto done = writeNotice(); !done) {
        return done;
    }
    return addFiles();
}

/// It comes into the system when all packages are there, so that the build itself does not show it.
Status Builder::writeNotice() const {
    if (m_options.name.empty()) {
        return {};
    }
    const fs::path own = m_work / "overlay/usr/lib/bulkhead";
    const fs::path commands = m_work / "overlay/usr/local/bin";
    std::error_code error;
    fs::create_directories(own, error);
    fs::create_directories(commands, error);
    if (error) {
        return failErrno("make " + own.string(), error.value());
    }
    constexpr std::string_view kConf = "APT::Update::Pre-Invoke { \"/usr/lib/bulkhead/apt-notice || true\"; };\n"
                                       "DPkg::Pre-Invoke { \"/usr/lib/bulkhead/apt-notice || true\"; };\n";
    return writeFile(own / "template", m_options.name + "\n")
        .and_then([&] { return writeFile(own / "apt-notice", kAptNoticeScript, fs::perms(0755)); })
        .and_then([&] { return writeFile(commands / "apt", kAptCommandScript, fs::perms(0755)); })
        .and_then([&] { return writeFile(commands / "apt-get", kAptCommandScript, fs::perms(0755)); })
        .and_then([&] { return writeFile(m_work / "overlay/etc/apt/apt.conf.d/91bulkhead", kConf); });
}

Status Builder::addFiles() const {
    const fs::path overlay = m_work / "overlay";
    std::error_code error;
    if (m_options.files) {
        constexpr auto kAsTheyAre = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
        fs::copy(*m_options.files, overlay, kAsTheyAre, error);
        if (error) {
            return failErrno("copy the template's files from " + m_options.files->string(), error.value());
        }
        // Whoever checked them out may have had any umask.
        for (const auto& entry : fs::recursive_directory_iterator(overlay, error)) {
            if (!entry.is_symlink()) {
                const bool isRun =
                    entry.is_directory() || (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
                fs::permissions(entry.path(), fs::perms(isRun ? 0755 : 0644), error);
            }
        }
    }
    const fs::path programs = overlay / "usr/lib/bulkhead";
    if (m_options.isSystemd || m_options.session) {
        fs::create_directories(programs, error);
    }
    const auto add = [&](const fs::path& program, const char* name) -> Status {
        fs::copy_file(program, programs / name, fs::copy_options::overwrite_existing, error);
        if (error) {
            return failErrno("copy " + program.string() + " into the template", error.value());
        }
        fs::permissions(programs / name, fs::perms(0755), error);
        return {};
    };
    if (m_options.isSystemd) {
        if (auto done = add(m_options.agent, "bulkhead-agent"); !done) {
            return done;
        }
    }
    return m_options.session ? add(*m_options.session, "bulkhead-session") : Status{};
}

std::vector<std::string> Builder::bootstrapArguments() const {
    std::vector<std::string> arguments{
        "--mode=unshare",
        "--variant=apt",
        "--format=tar",
        "--aptopt=Acquire::Languages \"none\"",
        // Translations and manuals would be a third of the template; copyright files stay, they have to.
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/info/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-include=/usr/share/locale/locale.alias",
        // The tree becomes an archive in the end: syncing each file gains nothing. customize.sh takes it out again.
        "--dpkgopt=force-unsafe-io",
        "--setup-hook=echo 'PHASE packages 0.05 Downloading packages' >&3",
        "--extract-hook=echo 'PHASE packages 0.30 Unpacking the base system' >&3",
        "--essential-hook=echo 'PHASE packages 0.40 Installing packages' >&3",
        "--customize-hook=" + (m_work / "customize.sh").string(),
    };
    if (!m_aptAuth.empty()) {
        // In the environment, because the root of mmdebstrap's namespace cannot read a file that only we can.
        // customize.sh takes it out again.
        arguments.emplace_back(R"(--setup-hook=umask 077; printf '%s' "$BULKHEAD_APT_AUTH" > "$1/etc/apt/auth.conf")");
    }
    for (const std::string& option : m_aptOptions.forBuild) {
        arguments.push_back("--aptopt=" + option.substr(0, option.size() - 1)); // mmdebstrap adds the semicolon
    }
    for (const char* const package : kAlways) {
        arguments.push_back("--include=" + std::string(package));
    }
    for (const std::string& package : m_options.packages) {
        arguments.push_back("--include=" + package);
    }
    arguments.insert(arguments.end(),
                     {m_options.suite, (m_work / "root.tar").string(), (m_work / "sources.list").string()});
    return arguments;
}

Status Builder::bootstrap() {
    m_progress.phase("packages", 0.02, "Reading the package lists");
    return runTool("/usr/bin/mmdebstrap", bootstrapArguments(),
                   {"TMPDIR=" + (m_work / "tmp").string(), "BULKHEAD_KERNEL=" + m_options.kernel,
                    "BULKHEAD_OVERLAY=" + (m_work / "overlay").string(), "BULKHEAD_APT_AUTH=" + m_aptAuth});
}

Status Builder::unpack() {
    m_progress.phase("unpack", 0.75, "Unpacking the system");
    // The device nodes in the archive cannot be made here, and devtmpfs covers them in the domain.
    return runMapped({"tar", "--extract", "--numeric-owner", "--exclude=./dev/*", "--directory",
                      (m_work / "root").string(), "--file", (m_work / "root.tar").string()});
}

Status Builder::takeOut() {
    m_progress.phase("initramfs", 0.80, "Making the initramfs");
    std::error_code error;
    fs::remove(m_work / "root.tar", error);
    const fs::path left = m_work / "root/var/tmp";
    std::ifstream version(left / "bulkhead-kernel-version");
    std::getline(version, m_kernelVersion);
    if (m_kernelVersion.empty() || m_kernelVersion.find('/') != std::string::npos) {
        return fail(ErrorCode::HostFailure, "The customize step left no kernel version");
    }
    for (const auto& [from, to] :
         {std::pair{"bulkhead-vmlinuz", "vmlinuz"}, {"bulkhead-packages.txt", "packages.txt"}}) {
        fs::copy_file(left / from, m_options.output / to, error);
        if (error) {
            return failErrno("copy " + std::string(to), error.value());
        }
        fs::permissions(m_options.output / to, fs::perms(0644), error);
    }
    for (const char* const name : {"bulkhead-vmlinuz", "bulkhead-packages.txt", "bulkhead-kernel-version"}) {
        fs::remove(left / name, error);
    }
    const auto initramfs =
        makeInitramfs(m_options.agent, m_work / "root/usr/lib/modules" / m_kernelVersion, m_options.isSystemd);
    if (!initramfs) {
        return fail(initramfs.error());
    }
    return writeFile(m_options.output / "initrd.img", *initramfs);
}

Status Builder::makeFileSystem() {
    m_progress.phase("filesystem", 0.85, "Making the disk image");
    const std::string image = (m_options.output / "root.img").string();
    // Nothing is left for the kernel to initialise later: that would write to every fork's overlay. A small journal,
    // for the same reason, and no reserve for root: the disk has one user.
    return runMapped({"/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-L", "bulkhead-system", "-m", "0", "-J", "size=16",
                      "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0", "-d",
                      (m_work / "root").string(), image, std::to_string(m_options.systemSize / kKiB) + "k"});
}

void Builder::removeWork() {
    if (m_work.empty()) {
        return;
    }
    m_cancel = {}; // also after a cancel
    // What lies there belongs to subordinate users.
    static_cast<void>(
        runTool("/usr/bin/unshare", {"--map-auto", "--map-root-user", "--", "rm", "-rf", "--one-file-system", "--",
                                     (m_work / "root").string(), (m_work / "tmp").string()}));
    std::error_code ignored;
    fs::remove_all(std::exchange(m_work, {}), ignored);
}

void Builder::removeOutput() const {
    std::error_code ignored;
    for (const char* const name : kResults) {
        fs::remove(m_options.output / name, ignored);
    }
}

} // namespace bulkhead::imaging::build
