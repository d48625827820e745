-- SPDX-License-Identifier: Apache-2.0
-- The guest's address when the instance's transport is vsock, else 0. No two instances share one.
ALTER TABLE instances ADD COLUMN cid INTEGER NOT NULL DEFAULT 0 CHECK (cid = 0 OR cid BETWEEN 3 AND 4294967294);
CREATE UNIQUE INDEX instances_cid ON instances (cid) WHERE cid <> 0;
