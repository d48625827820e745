// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_runtime.hpp"

#include "base/log.hpp"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <csignal>
#include <stdexcept>

namespace bulkhead::hypervisor {
namespace {

void ignoreError(void*, virErrorPtr) {}
void wakeUp(int, void*) {}

} // namespace

LibvirtRuntime::LibvirtRuntime() {
    // The library writes to its socket with write(2): a libvirtd that has just died would end us with it.
    std::signal(SIGPIPE, SIG_IGN);
    // Registering again is harmless: the library keeps the first registration and says success.
    if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0) {
        throw std::runtime_error("libvirt's client library cannot be initialised");
    }
    virSetErrorFunc(nullptr, ignoreError);
    // The loop has no "stop" of its own: a timer that is off until the end makes it turn once more.
    m_timer = virEventAddTimeout(-1, wakeUp, nullptr, nullptr);
    if (m_timer < 0) {
        throw std::runtime_error("libvirt's event loop takes no timer");
    }
    m_thread = std::thread([this] { loop(); });
}

LibvirtRuntime::~LibvirtRuntime() {
    m_isStopping = true;
    virEventUpdateTimeout(m_timer, 0);
    m_thread.join();
    virEventRemoveTimeout(m_timer);
}

void LibvirtRuntime::loop() {
    while (!m_isStopping) {
        if (virEventRunDefaultImpl() < 0) {
            log::error("libvirt's event loop failed; a libvirtd that hangs will not be noticed");
            return;
        }
    }
}

} // namespace bulkhead::hypervisor
