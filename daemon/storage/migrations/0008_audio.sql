-- SPDX-License-Identifier: Apache-2.0
-- The sound device of an instance, and of the machine that a snapshot's memory is of.
ALTER TABLE instances ADD COLUMN audio TEXT NOT NULL DEFAULT 'off';
ALTER TABLE snapshot_memories ADD COLUMN audio TEXT NOT NULL DEFAULT 'off';
