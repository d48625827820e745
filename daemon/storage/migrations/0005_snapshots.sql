-- SPDX-License-Identifier: Apache-2.0
-- The lineage. Layers of a disk: one line each, the topmost first, "qcow2 /path".
CREATE TABLE snapshots (
    id               TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    parent           TEXT    NOT NULL DEFAULT '',
    -- Neither domain nor parent is a reference: a node outlives both.
    domain           TEXT    NOT NULL CHECK (length(domain) = 36),
    owner            INTEGER NOT NULL CHECK (owner BETWEEN 0 AND 4294967295),
    domain_name      TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    phase            TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    reason           TEXT    NOT NULL,
    label            TEXT    NOT NULL DEFAULT '',
    pinned           INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    suspect          TEXT    NOT NULL DEFAULT '',
    template         TEXT    NOT NULL,
    template_version TEXT    NOT NULL,
    size             TEXT    NOT NULL,
    size_on_disk     INTEGER NOT NULL DEFAULT 0 CHECK (size_on_disk >= 0),
    system           TEXT    NOT NULL DEFAULT '',
    home             TEXT    NOT NULL DEFAULT ''
) STRICT;

-- Of the full ones.
CREATE TABLE snapshot_memories (
    snapshot      TEXT    NOT NULL PRIMARY KEY REFERENCES snapshots (id) ON DELETE CASCADE,
    delta         TEXT    NOT NULL,
    devices       TEXT    NOT NULL,
    parent_file   TEXT    NOT NULL DEFAULT '',
    parent_digest TEXT    NOT NULL DEFAULT '',
    memory        INTEGER NOT NULL CHECK (memory > 0),
    vcpus         INTEGER NOT NULL CHECK (vcpus > 0),
    heads         INTEGER NOT NULL CHECK (heads >= 0),
    acceleration  TEXT    NOT NULL,
    transport     TEXT    NOT NULL,
    machine       TEXT    NOT NULL
) STRICT;

-- Where domains stand. No reference to the node: one that was lost must not keep its domain from being read.
CREATE TABLE heads (
    domain    TEXT    NOT NULL PRIMARY KEY REFERENCES domains (id) ON DELETE CASCADE,
    node      TEXT    NOT NULL DEFAULT '',
    suspended INTEGER NOT NULL DEFAULT 0 CHECK (suspended IN (0, 1))
) STRICT;

-- What a memory image of the instance is bound to. Instances of before: a snapshot of them has no memory.
ALTER TABLE instances ADD COLUMN memory INTEGER NOT NULL DEFAULT 0 CHECK (memory >= 0);
ALTER TABLE instances ADD COLUMN vcpus INTEGER NOT NULL DEFAULT 1 CHECK (vcpus > 0);
