-- SPDX-License-Identifier: Apache-2.0
-- A guest that was booted to make a warm image of belongs to no domain: NULL.
CREATE TABLE instances_new (
    id               TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    domain           TEXT             REFERENCES domains (id) ON DELETE RESTRICT,
    phase            TEXT    NOT NULL,
    -- Two emulators must never run as the same user.
    uid_slot         INTEGER NOT NULL UNIQUE CHECK (uid_slot BETWEEN 0 AND 4294967295),
    template_version TEXT    NOT NULL,
    size             TEXT    NOT NULL,
    acceleration     TEXT    NOT NULL,
    transport        TEXT    NOT NULL,
    started_at       INTEGER NOT NULL,
    cid              INTEGER NOT NULL DEFAULT 0 CHECK (cid = 0 OR cid BETWEEN 3 AND 4294967294),
    heads            INTEGER NOT NULL DEFAULT 0 CHECK (heads BETWEEN 0 AND 16)
) STRICT;
INSERT INTO instances_new
    SELECT id, domain, phase, uid_slot, template_version, size, acceleration, transport, started_at, cid, heads
    FROM instances;
DROP TABLE instances;
ALTER TABLE instances_new RENAME TO instances;
CREATE INDEX instances_domain ON instances (domain);
CREATE UNIQUE INDEX instances_cid ON instances (cid) WHERE cid <> 0;
