#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /usr/lib/bulkhead/apt-notice of a template: says where changes to the system belong. apt calls it as root before it
# changes something (/etc/apt/apt.conf.d/91bulkhead), and it must never fail: apt would.
template=TEMPLATE
[ ! -r /usr/lib/bulkhead/template ] || read -r template < /usr/lib/bulkhead/template || :
echo "Note: changes to the system last until this domain stops; only its home is kept.
To keep a package, on the host: sudo bulkhead template install $template PACKAGE" >&2 || :
exit 0
