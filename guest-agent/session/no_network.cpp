// SPDX-License-Identifier: Apache-2.0
// Only in the static program. libxcb knows how to reach an X server over a network, and for that a static libc would
// load its name services from the guest, whatever version those are of. A domain's X server is a Unix socket, so here
// no host has an address.
#include <netdb.h>

extern "C" int getaddrinfo(const char* /*node*/, const char* /*service*/, const addrinfo* /*hints*/,
                           addrinfo** /*result*/) {
    return EAI_FAIL;
}

extern "C" void freeaddrinfo(addrinfo* /*result*/) {}
