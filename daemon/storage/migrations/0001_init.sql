-- SPDX-License-Identifier: Apache-2.0
-- Enumerations are stored as words (storage/stored_words.cpp), so that a dump of the database can be read by people.

CREATE TABLE domains (
    id           TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    owner        INTEGER NOT NULL CHECK (owner BETWEEN 0 AND 4294967295),
    name         TEXT    NOT NULL CHECK (name <> ''),
    kind         TEXT    NOT NULL,
    phase        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    last_failure TEXT    NOT NULL DEFAULT '',
    template     TEXT    NOT NULL DEFAULT '',
    size         TEXT    NOT NULL DEFAULT '',
    UNIQUE (owner, name)
) STRICT;

CREATE TABLE instances (
    id               TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    domain           TEXT    NOT NULL REFERENCES domains (id) ON DELETE RESTRICT,
    phase            TEXT    NOT NULL,
    -- Two emulators must never run as the same user.
    uid_slot         INTEGER NOT NULL UNIQUE CHECK (uid_slot BETWEEN 0 AND 4294967295),
    template_version TEXT    NOT NULL,
    size             TEXT    NOT NULL,
    acceleration     TEXT    NOT NULL,
    transport        TEXT    NOT NULL,
    started_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX instances_domain ON instances (domain);
