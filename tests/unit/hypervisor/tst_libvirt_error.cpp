// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_error.hpp"

#include <QTest>

#include <libvirt/virterror.h>

#include <cerrno>

using namespace bulkhead;

class LibvirtErrorTest : public QObject {
    Q_OBJECT

private slots:
    void mapping_data() {
        QTest::addColumn<int>("code");
        QTest::addColumn<int>("domain");
        QTest::addColumn<int>("number");
        QTest::addColumn<QByteArray>("message");
        QTest::addColumn<int>("expected");
        QTest::addColumn<QString>("mentions");
        const auto row = [](const char* name, int code, int domain, int number, const char* message, ErrorCode expected,
                            const char* mentions) {
            QTest::newRow(name) << code << domain << number << QByteArray(message) << static_cast<int>(expected)
                                << QString(mentions);
        };
        row("nobody listens", VIR_ERR_SYSTEM_ERROR, VIR_FROM_RPC, ECONNREFUSED,
            "Failed to connect socket to '/run/libvirt/libvirt-sock': Connection refused", ErrorCode::Unavailable,
            "is libvirtd running?");
        row("the line broke", VIR_ERR_RPC, VIR_FROM_RPC, 0, "End of file while reading data: Input/output error",
            ErrorCode::Unavailable, "End of file");
        row("closed before", VIR_ERR_INTERNAL_ERROR, VIR_FROM_RPC, 0, "internal error: client socket is closed",
            ErrorCode::Unavailable, "doing it: client socket is closed");
        row("no permission", VIR_ERR_AUTH_CANCELLED, VIR_FROM_POLKIT, 0, "authentication cancelled",
            ErrorCode::Unavailable, "does not accept this user");
        row("no domain", VIR_ERR_NO_DOMAIN, VIR_FROM_QEMU, 0, "Domain not found", ErrorCode::NotFound, "not found");
        row("runs already", VIR_ERR_OPERATION_INVALID, VIR_FROM_DOMAIN, 0,
            "Requested operation is not valid: domain 'bh-1' is already active", ErrorCode::AlreadyExists, "active");
        row("name taken", VIR_ERR_OPERATION_FAILED, VIR_FROM_DOMAIN, 0,
            "operation failed: domain 'bh-1' already exists with uuid 2", ErrorCode::AlreadyExists, "uuid");
        row("not running", VIR_ERR_OPERATION_INVALID, VIR_FROM_QEMU, 0, "domain is not running", ErrorCode::WrongState,
            "not running");
        row("locked", VIR_ERR_OPERATION_TIMEOUT, VIR_FROM_QEMU, 0, "cannot acquire state change lock",
            ErrorCode::TimedOut, "lock");
        row("no memory in libvirtd", VIR_ERR_NO_MEMORY, VIR_FROM_QEMU, 0, "out of memory", ErrorCode::LimitExceeded,
            "memory");
        row("no memory for the guest", VIR_ERR_INTERNAL_ERROR, VIR_FROM_QEMU, 0,
            "internal error: process exited while connecting to monitor: 2026-01-01T00:00:00.1Z qemu-system-x86_64: "
            "cannot set up guest memory 'pc.ram': Cannot allocate memory",
            ErrorCode::LimitExceeded, "doing it: process exited");
        row("disk full in libvirtd", VIR_ERR_SYSTEM_ERROR, VIR_FROM_QEMU, ENOSPC, "cannot write file",
            ErrorCode::NoSpace, "write");
        row("disk full in QEMU", VIR_ERR_INTERNAL_ERROR, VIR_FROM_QEMU, 0, "x: No space left on device",
            ErrorCode::NoSpace, "space");
        row("libvirt's folder is closed", VIR_ERR_INTERNAL_ERROR, VIR_FROM_QEMU, 0,
            "Unable to read /var/lib/libvirt/qemu/domain-1/master-key.aes: Permission denied", ErrorCode::HostFailure,
            "bulkhead doctor");
        row("anything else", VIR_ERR_CONFIG_UNSUPPORTED, VIR_FROM_QEMU, 0, "unsupported configuration: x",
            ErrorCode::HostFailure, "unsupported");
        row("many lines", VIR_ERR_INTERNAL_ERROR, VIR_FROM_QEMU, 0, "a\nb\x1b[2J\n", ErrorCode::HostFailure,
            "a b\\x1b[2J");
    }
    void mapping() {
        QFETCH(int, code);
        QFETCH(int, domain);
        QFETCH(int, number);
        QFETCH(QByteArray, message);
        QFETCH(int, expected);
        QFETCH(QString, mentions);
        virError raw{};
        raw.code = code;
        raw.domain = domain;
        raw.int1 = number;
        raw.message = message.data();
        const auto error = hypervisor::errorFrom(&raw, "doing it");
        QCOMPARE(nameOf(error.code), nameOf(static_cast<ErrorCode>(expected)));
        QVERIFY2(error.message.starts_with("doing it: "), error.message.c_str());
        QVERIFY2(QString::fromStdString(error.message).contains(mentions), error.message.c_str());
        QVERIFY(error.message.find('\n') == std::string::npos);
    }
    void noError() {
        QCOMPARE(nameOf(hypervisor::errorFrom(nullptr, "doing it").code), nameOf(ErrorCode::HostFailure));
    }
};

QTEST_APPLESS_MAIN(LibvirtErrorTest)
#include "tst_libvirt_error.moc"
